package policy

// curves are the curves that ECDSA keys may have.
var curves = []string{"secp224r1", "secp256r1", "secp384r1", "secp521r1", "brainpoolP256r1", "brainpoolP384r1", "brainpoolP512r1"}

// hashes are the hash functions of certificates' signatures.
var hashes = []string{"SHA-1", "SHA-224", "SHA-256", "SHA-384", "SHA-512"}
