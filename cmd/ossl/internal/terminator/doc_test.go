// Package terminator_test tests servers from outside. Where each fault is tested:
//
//   - wrong settings and files: TestFile, TestCheck, TestStartFails, TestReload, TestUserRefused and
//     the scripts serve_errors and serve_config of cmd/ossl
//   - certificates that are replaced, by garbage too: TestCertificateChanges, TestMetrics
//   - uploads and answers that are cut off, by either end or the server's own: TestCuts,
//     TestCutAtEnd, TestCutHTTP10, TestCutOff, TestTruncation, TestRestOfAnswer, TestAnswerInFull; in an
//     upgraded connection: TestUpgradeCut
//   - backends that are down, wrong, silent, or stall: TestBackendFails, TestReverse,
//     TestStalledBackend, TestClosedWhileIdle; all connections to them in use: TestBusy, TestAddressRequests
//   - slow clients: TestSlowClients, TestNeverReads, TestUnread, TestHalfOpen,
//     TestProxyHeaderIsLate, TestIdle; slow but steady ones: TestLongDownload, TestLongUpload
//   - floods: TestFloods for headers, TestFrameFloods for HTTP/2, TestLimits for connections
//   - requests with two meanings: TestFloods, TestMalformed, TestForgedHeaders, TestUpgradeToHTTP,
//     TestNoUpgrade; responses that are taken for others: TestDataBehindResponse
//   - paths and files that aren't served: TestFiles, TestListing, TestIndexIsGone; a file that gets
//     shorter: TestTruncatedFile
//   - Redis that goes away: TestRedis
//   - SIGTERM in each state: TestDrain, TestDrainStates, TestCutAtEnd, TestAdmin, TestDrainAdmin
package terminator_test
