package terminator

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// demands returns a hash of the settings by which clients and backends are admitted: a connection that was
// admitted by others doesn't move. sum is that of the files of the clients' authorities.
func (s *sitePlan) demands(tls *tlsPlan, sum []byte) (string, error) {
	settings := []any{tls.engine, tls.policy.name, tls.plain, tls.fips, tls.crls.files, tls.crls.soft, s.ALPN,
		s.ClientCA, sum, s.ClientOptional, s.ClientAllow}
	if b := s.backends; b != nil {
		settings = append(settings, b.CA, b.Name, b.Cert, b.Key, b.CRLs, b.CRLSoftFail)
		if b.CA != "" {
			_, sum, err := readPoolAndSum([]string{b.CA})
			if err != nil {
				return "", err
			}
			settings = append(settings, sum)
		}
	}
	hash := sha256.Sum256(fmt.Appendf(nil, "%q", settings))
	return hex.EncodeToString(hash[:]), nil
}
