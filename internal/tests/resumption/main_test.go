//go:build cgo || ossl_nocgo

package resumption

import (
	"testing"

	"github.com/ossl-go/ossl/internal/ossltest"
)

// TestMain omits the tests that use features FIPS mode refuses.
func TestMain(m *testing.M) {
	ossltest.Main(m, []ossltest.Exception{
		{Tests: "TestChosenPolicyIsNotResumedAround", Reason: "a configuration that is chosen can't have ClientCAs of its own"},
		{Tests: "TestResumeAfterHelloRetry", Reason: "it is made with X25519"},
		{Tests: "TestResumedInAnotherShard|TestFullHandshakesInShards", Reason: "one of the keys is a crypto.Signer"},
		{Tests: "TestSuiteNoLongerAllowed|TestZeroTicketKey|TestTicketKeys/S.*", Reason: "SetSessionTicketKeys is refused"},
	})
}
