//! Checks that a request to a worker was signed by Restate. The SDK parses the token and needs a
//! cryptography provider, which is `ring`, as for TLS.

use jsonwebtoken::crypto::{CryptoProvider, JwkUtils, JwtSigner, JwtVerifier};
use jsonwebtoken::errors::{ErrorKind, Result};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey};
use ring::signature::{ED25519, UnparsedPublicKey};
use signature::Verifier;

/// The cryptography for Ed25519, the only algorithm that Restate uses.
static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: signer,
    verifier_factory: verifier,
    jwk_utils: JwkUtils::new_unimplemented(),
};

/// The public key that a signature is checked with.
struct Ed25519(DecodingKey);

/// Installs the provider, so that signatures can be checked in this process. A provider that the
/// program has installed stays.
pub(crate) fn install() {
    // An error means that one is installed already.
    let _ = PROVIDER.install_default();
}

/// A worker does not sign anything.
fn signer(_: &Algorithm, _: &EncodingKey) -> Result<Box<dyn JwtSigner>> {
    Err(ErrorKind::InvalidAlgorithm.into())
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    match algorithm {
        Algorithm::EdDSA => Ok(Box::new(Ed25519(key.clone()))),
        _ => Err(ErrorKind::InvalidAlgorithm.into()),
    }
}

impl Verifier<Vec<u8>> for Ed25519 {
    fn verify(
        &self,
        message: &[u8],
        signature: &Vec<u8>,
    ) -> std::result::Result<(), signature::Error> {
        UnparsedPublicKey::new(&ED25519, self.0.as_bytes())
            .verify(message, signature)
            .map_err(|_| signature::Error::new())
    }
}

impl JwtVerifier for Ed25519 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::EdDSA
    }
}

#[cfg(test)]
mod tests {
    use std::time::{SystemTime, UNIX_EPOCH};

    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use restate_sdk::endpoint::Endpoint;
    use ring::signature::Ed25519KeyPair;
    use serde_json::{Value, json};

    use super::*;

    /// A seed that is used nowhere else, and its public key in Restate's format.
    const SEED: [u8; 32] = [7; 32];
    const PUBLIC_KEY: &str = "publickeyv1_GmaDrppBC7P5ARKV8g3djiwP89vz1jLK23V2GBjuAEGB";
    const PATH: &str = "/invoke/plimsoll/run";

    /// Creates a token like Restate's, with these changes to its claims.
    fn token(audience: &str, expires_in: i64) -> String {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_secs() as i64;
        let claims = json!({
            "aud": audience, "iat": now, "nbf": now - 60, "exp": now + expires_in,
        });
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!(
            "{}.{}",
            part(&json!({"typ": "JWT", "alg": "EdDSA"})),
            part(&claims)
        );
        let key = Ed25519KeyPair::from_seed_unchecked(&SEED).unwrap();
        let signature = URL_SAFE_NO_PAD.encode(key.sign(signed.as_bytes()));
        format!("{signed}.{signature}")
    }

    fn status(headers: &[(&str, &str)]) -> u16 {
        install();
        let endpoint = Endpoint::builder()
            .identity_key(PUBLIC_KEY)
            .unwrap()
            .build();
        let mut request = http::Request::builder().uri(PATH);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        endpoint
            .handle(request.body(String::new()).unwrap())
            .status()
            .as_u16()
    }

    #[test]
    fn only_what_was_signed_for_this_path_and_now_is_taken() {
        let signed = |token: &str| {
            status(&[
                ("x-restate-signature-scheme", "v1"),
                ("x-restate-jwt-v1", token),
            ])
        };
        for refused in [
            status(&[]),
            status(&[("x-restate-signature-scheme", "unsigned")]),
            signed("x.y.z"),
            signed(&token(PATH, -1)),
            signed(&token("/invoke/plimsoll/approve", 60)),
            signed(&token(PATH, 60).replacen("eyJ", "eyK", 1)),
            signed(&token(PATH, 60).chars().rev().collect::<String>()),
        ] {
            assert_eq!(refused, 401);
        }
        // The request is accepted by the signature check and refused as meaningless.
        assert_ne!(signed(&token(PATH, 60)), 401);
    }
}
