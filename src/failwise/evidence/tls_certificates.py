"""The facts of certificates: dates, names, issuers, the chain as it was sent."""

import datetime
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from failwise.evidence.bounds import bounded
from failwise.evidence.tls_labels import diagnosis_of, labels
from failwise.evidence.tls_surroundings import instant, is_address, proxy_for, with_surroundings

CHAIN_LIMIT: Final = 10
"""Certificates looked at of one chain."""
_NAMES_LIMIT: Final = 100


def certificate_facts(
    chain: Sequence[bytes],
    *,
    host: str | None = None,
    address: str | None = None,
    protocol: str | None = None,
    verify_code: int | None = None,
    verify_text: str | None = None,
    reason: str = "",
    next_bytes: bytes = b"",
    proxy: str | None = None,
    now: float | None = None,
    roots: Mapping[str, Any] | None = None,
    peer_time: float | None = None,
    held: bool = False,
) -> dict[str, Any]:
    """What a chain (DER, leaf first, as sent) and the failed check say, as plain JSON data.

    ``host``, ``sni`` (None for an address: none is sent), ``by_address``, ``address``, ``tcp`` and
    ``tls`` (two facts: the connection stood; the handshake held), ``verify_code`` and
    ``verify_text`` (OpenSSL's), ``protocol``, ``proxy`` (the one in use, else None), ``diagnosis`` (a
    label of `tls.toml`); with a chain also ``subject``, ``issuer`` (RFC 4514), ``names``
    (subjectAltName), ``not_before``, ``not_after``, ``expired_since`` (RFC 3339, UTC; None: not
    expired), ``expired_subject``, ``self_signed``, ``chain`` (of each certificate sent: ``subject``,
    ``issuer``, ``not_before``, ``not_after``, ``key``, ``signature``), ``interceptor`` (a name known
    for breaking TLS open); ``roots`` and ``clock`` as in `tls_surroundings`, where they bear on it.
    `now` and `peer_time` are epoch seconds; `now` is the clock when left out. `held`: the handshake
    succeeded.
    """
    moment = time.time() if now is None else now
    facts: dict[str, Any] = {
        "host": host,
        "sni": None if host is None or is_address(host) else host,
        "by_address": host is not None and is_address(host),
        "address": address,
        "tcp": True,
        "tls": held,
        "verify_code": verify_code,
        "verify_text": verify_text,
        "protocol": protocol,
        "proxy": proxy or proxy_for(host),
        "diagnosis": "ok" if held else diagnosis_of(verify_code, reason, next_bytes),
    }
    if chain:
        if facts["diagnosis"] == "no_common_cipher":
            # The server sent its certificate, so a cipher was agreed on: it misses the client's.
            facts["diagnosis"] = "client_cert_required"
        facts.update(_chain_facts(chain, verify_code, moment))
    return with_surroundings(facts, moment, roots, peer_time)


def _chain_facts(chain: Sequence[bytes], code: int | None, now: float) -> dict[str, Any]:
    """What the certificates themselves say."""
    from cryptography import x509

    certificates: list[x509.Certificate] = []
    for encoded in chain[:CHAIN_LIMIT]:
        try:
            certificates.append(x509.load_der_x509_certificate(encoded))
        except ValueError:
            break
    if not certificates:
        return {}
    leaf = certificates[0]
    moment = datetime.datetime.fromtimestamp(now, datetime.UTC)
    expired = next((one for one in certificates if one.not_valid_after_utc < moment), None)
    described = [_described(one) for one in certificates]
    facts: dict[str, Any] = {
        "subject": described[0]["subject"],
        "issuer": described[0]["issuer"],
        "names": _names(leaf),
        "not_before": described[0]["not_before"],
        "not_after": described[0]["not_after"],
        "expired_since": instant(expired.not_valid_after_utc) if expired else None,
        "expired_subject": _name(expired.subject) if expired else None,
        "self_signed": leaf.subject == leaf.issuer,
        "chain": described,
        "interceptor": _interceptor(described),
    }
    if code in (2, 20, 21) and len(certificates) == 1 and _lacks_intermediate(leaf):
        facts["diagnosis"] = "incomplete_chain"
    return facts


def _described(certificate: Any) -> dict[str, Any]:
    digest = certificate.signature_hash_algorithm
    return {
        "subject": _name(certificate.subject),
        "issuer": _name(certificate.issuer),
        "not_before": instant(certificate.not_valid_before_utc),
        "not_after": instant(certificate.not_valid_after_utc),
        "key": _key(certificate),
        "signature": digest.name if digest is not None else None,
    }


def _key(certificate: Any) -> str | None:
    """Kind and length of the public key: ``RSA 2048``, ``EC secp256r1``, ``Ed25519``."""
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    try:
        key = certificate.public_key()
    except Exception:  # an algorithm that is not supported
        return None
    if isinstance(key, rsa.RSAPublicKey):
        return f"RSA {key.key_size}"
    if isinstance(key, ec.EllipticCurvePublicKey):
        return f"EC {key.curve.name}"
    return type(key).__name__.removesuffix("PublicKey").strip("_")


def _name(name: Any) -> str:
    return bounded(name.rfc4514_string(), 300)


def _names(certificate: Any) -> list[str]:
    """The subjectAltName: DNS names and addresses; without one, nothing (the CN no longer counts)."""
    from cryptography import x509

    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except (x509.ExtensionNotFound, x509.DuplicateExtension, ValueError):
        return []
    names = [one for one in extension.value if isinstance(one, (x509.DNSName, x509.IPAddress))]
    return [str(one.value) for one in names[:_NAMES_LIMIT]]


def _lacks_intermediate(leaf: Any) -> bool:
    """Was the leaf signed by an intermediate (which was not sent), rather than by a root?"""
    from cryptography import x509
    from cryptography.x509.oid import AuthorityInformationAccessOID, NameOID

    if leaf.subject == leaf.issuer:
        return False
    try:
        access = leaf.extensions.get_extension_for_class(x509.AuthorityInformationAccess).value
        if any(one.access_method == AuthorityInformationAccessOID.CA_ISSUERS for one in access):
            return True
    except (x509.ExtensionNotFound, x509.DuplicateExtension, ValueError):
        pass
    common = [str(one.value) for one in leaf.issuer.get_attributes_for_oid(NameOID.COMMON_NAME)]
    lowered = _name(leaf.issuer).lower()
    known = labels()
    return any(name in known.intermediate_names for name in common) or any(
        word in lowered for word in known.intermediate_words
    )


def _interceptor(chain: Sequence[Mapping[str, Any]]) -> str | None:
    for one in chain:
        lowered = one["issuer"].lower()
        if any(word in lowered for word in labels().interceptors):
            return str(one["issuer"])
    return None
