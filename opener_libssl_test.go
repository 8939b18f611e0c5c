package ossl

import "testing"

// TestEdge follows three records, one of them empty, in pieces of each size.
func TestEdge(t *testing.T) {
	stream := []byte{23, 3, 3, 0, 2, 'a', 'b', 23, 3, 3, 0, 0, 22, 3, 3, 0, 1, 'c'}
	ends := map[int]bool{0: true, 7: true, 12: true, 18: true}
	for size := 1; size <= len(stream); size++ {
		var o libsslOpener
		for at := 0; at < len(stream); {
			n := min(size, len(stream)-at)
			o.edge.pass(stream[at : at+n])
			if at += n; o.whole(nil) != ends[at] || o.whole(stream[:1]) {
				t.Errorf("pieces of %d: after %d bytes, whole: %v", size, at, o.whole(nil))
			}
		}
	}
}
