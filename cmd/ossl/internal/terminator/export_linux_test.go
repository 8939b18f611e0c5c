package terminator

// For tests.
var (
	LandlockVersion = landlockVersion
	GroupMemory     = groupMemory
)
