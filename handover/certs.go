package handover

import "crypto/sha256"

// Certificates travel once for many connections. Both processes keep the newest ones, and forget the
// same ones at the same time: each has a certs, to which it adds all certificates of the session in
// the order in which they travel.
type certs struct {
	der   map[[sha256.Size]byte][]byte
	order [][sha256.Size]byte // oldest first
	size  int
}

const (
	maxCertificate  = 256 << 10
	maxCertificates = 4096
	maxCertsSize    = 4 << 20
	maxChain        = 1 << 20 // of the certificates of one connection, less than a table holds
)

func (c *certs) has(sum [sha256.Size]byte) bool { _, ok := c.der[sum]; return ok }

// add adds a certificate, of which the table is the owner now, and forgets the oldest ones if there are
// too many.
func (c *certs) add(sum [sha256.Size]byte, der []byte) {
	if c.has(sum) {
		return
	}
	if c.der == nil {
		c.der = make(map[[sha256.Size]byte][]byte)
	}
	c.der[sum] = der
	c.order = append(c.order, sum)
	c.size += len(der)
	for len(c.order) > maxCertificates || c.size > maxCertsSize {
		oldest := c.order[0]
		c.order = c.order[1:]
		c.size -= len(c.der[oldest])
		delete(c.der, oldest)
	}
}

// missing returns the first of the certificates that isn't in the table.
func (c *certs) missing(of [][]byte) (der []byte, sum [sha256.Size]byte, found bool) {
	for _, der := range of {
		if sum := sha256.Sum256(der); !c.has(sum) {
			return der, sum, true
		}
	}
	return nil, sum, false
}
