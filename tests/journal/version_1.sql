-- A journal as schema version 1 wrote it. Never change this file.
BEGIN TRANSACTION;
CREATE TABLE attempts ( call INTEGER NOT NULL, position INTEGER NOT NULL, number INTEGER NOT NULL, started REAL NOT NULL, duration_ms REAL NOT NULL, category TEXT, code TEXT, http_status INTEGER, effect TEXT, message TEXT, failure_rule TEXT, action TEXT, delay REAL, reason TEXT, rule TEXT, PRIMARY KEY (call, position)) WITHOUT ROWID;
INSERT INTO "attempts" VALUES(1,0,1,0.0,10000.0,'network','network.read_timeout',NULL,'unknown','no answer within 10 s','stdlib.timeout','retry_backoff',1.0,'a read may be repeated','network');
INSERT INTO "attempts" VALUES(1,1,2,11.0,10000.0,'network','network.read_timeout',NULL,'unknown','no answer within 10 s','stdlib.timeout',NULL,NULL,NULL,NULL);
CREATE TABLE calls ( id INTEGER PRIMARY KEY, call_id TEXT NOT NULL, run_id TEXT NOT NULL, parent_id TEXT, tool TEXT NOT NULL, started REAL NOT NULL, duration_ms REAL NOT NULL, latency_bucket INTEGER NOT NULL, success INTEGER NOT NULL, category TEXT, code TEXT, http_status INTEGER, effect TEXT, stop_reason TEXT NOT NULL, action TEXT, sent INTEGER NOT NULL, failed_attempts INTEGER NOT NULL, repairs INTEGER NOT NULL, degraded_to TEXT, verified INTEGER, retry_after REAL, retry_at REAL, provider TEXT, fingerprint TEXT, rule TEXT, message TEXT, failure TEXT, arguments TEXT);
INSERT INTO "calls" VALUES(1,'call_old','run',NULL,'search',1800000000.0,21000.0,430,0,'network','network.read_timeout',NULL,'unknown','retries_exhausted','ask_model',2,2,0,NULL,NULL,NULL,NULL,NULL,'abc','stdlib.timeout','no answer within 10 s','{"message":"no answer within 10 s","details":{"limit":10},"category":"network","code":"network.read_timeout","effect":"unknown","fix_by":"model","layer":"tool_execution","confidence":0.5,"samples":0,"rule":"stdlib.timeout","fingerprint":"abc"}','{"query":"shoes"}');
CREATE TABLE claims ( key TEXT PRIMARY KEY, run_id TEXT NOT NULL, fingerprint TEXT NOT NULL, tool TEXT NOT NULL, call_id TEXT NOT NULL, state TEXT NOT NULL, owner TEXT NOT NULL, claimed_at REAL NOT NULL, lease_until REAL NOT NULL, generation INTEGER NOT NULL, settled_at REAL, arguments TEXT, result TEXT) WITHOUT ROWID;
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO "meta" VALUES('schema_version','1');
CREATE TABLE prevented ( id INTEGER PRIMARY KEY, at REAL NOT NULL, key TEXT NOT NULL, run_id TEXT NOT NULL, tool TEXT NOT NULL, call_id TEXT NOT NULL, state TEXT NOT NULL);
CREATE INDEX calls_by_time ON calls (started);
CREATE INDEX claims_by_fingerprint ON claims (run_id, fingerprint);
CREATE INDEX prevented_by_time ON prevented (at);
COMMIT;
