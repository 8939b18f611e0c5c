//go:build !cgo && linux && (amd64 || arm64)

package nocgo

import (
	"github.com/ossl-go/ossl/nocgo/internal/object"
	_ "github.com/ossl-go/ossl/nocgo/link" // the objects import it: so go.mod files are the same without them
)

// If this is undefined, the tree has no objects: require a release, or make them with ci/nocgo -objects.
const _ = object.MadeByNocgoBuild
