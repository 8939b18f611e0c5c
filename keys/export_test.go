package keys

// ShowURI returns a URI as errors show it.
var ShowURI = showURI

// DefaultMaxSigners is the bound on the signatures that are made with a token's key at one time.
const DefaultMaxSigners = defaultMaxSigners
