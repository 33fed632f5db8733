"""Certificates for tests: an authority, and the certificates that it signs. Each is in one PEM file with its key."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Authority:
    """An authority, whose certificates are valid for a day."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = self._built(self._name, self._key, []).add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        usage = {"digital_signature", "key_cert_sign", "crl_sign"}
        fields = (
            "digital_signature",
            "content_commitment",
            "key_encipherment",
            "data_encipherment",
            "key_agreement",
            "key_cert_sign",
            "crl_sign",
        )
        certificate = certificate.add_extension(
            x509.KeyUsage(**{field: field in usage for field in fields}, encipher_only=False, decipher_only=False), critical=True
        )
        self.file = folder / f"{name}.pem"
        self.file.write_bytes(certificate.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))

    def _built(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, alternatives: list[x509.GeneralName]) -> x509.CertificateBuilder:
        now = datetime.now(timezone.utc)
        built = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            # without these Python 3.13 trusts no certificate
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        return built.add_extension(x509.SubjectAlternativeName(alternatives), critical=False) if alternatives else built

    def revoke(self, file: Path, *revoked: Path, until: datetime | None = None) -> Path:
        """Write a list of revoked certificates, which is valid for a day, or until a given time."""
        now = datetime.now(timezone.utc)
        built = x509.CertificateRevocationListBuilder().issuer_name(self._name).last_update(now - timedelta(days=2))
        built = built.next_update(until or now + timedelta(days=1))
        for each in revoked:
            number = x509.load_pem_x509_certificate(each.read_bytes()[each.read_bytes().index(b"-----BEGIN CERT") :]).serial_number
            built = built.add_revoked_certificate(x509.RevokedCertificateBuilder().serial_number(number).revocation_date(now).build())
        file.write_bytes(built.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
        return file

    def issue(self, name: str, *alternatives: x509.GeneralName, file: Path | None = None) -> Path:
        """Return a file with a certificate and its key. Without alternatives it is for a server on this machine."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Acme, Ltd"), x509.NameAttribute(NameOID.COMMON_NAME, name)])
        here = [x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))]
        certificate = self._built(subject, key, list(alternatives) or here).sign(self._key, hashes.SHA256())
        path = file or self._folder / f"{name}.pem"
        content = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        path.write_bytes(content + certificate.public_bytes(serialization.Encoding.PEM))
        return path
