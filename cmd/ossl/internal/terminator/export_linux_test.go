package terminator

// For tests.
var LandlockVersion = landlockVersion
