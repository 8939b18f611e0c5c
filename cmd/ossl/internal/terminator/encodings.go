package terminator

import (
	"strconv"
	"strings"
)

// An encoding is a coding of contents of which files may lie beside the plain ones: RFC 9110, section 8.4.1.
type encoding struct{ name, suffix string }

// encodings are in the order in which they are preferred.
var encodings = []encoding{{"br", ".br"}, {"zstd", ".zst"}, {"gzip", ".gz"}}

// acceptable returns the encodings that a client prefers to plain contents, the best one first: RFC 9110,
// section 12.5.3.
func acceptable(accept string) (list []encoding) {
	if accept == "" {
		return nil
	}
	weights, others := map[string]float64{}, -1.0
	for part := range strings.SplitSeq(accept, ",") {
		name, parameters, _ := strings.Cut(part, ";")
		name = strings.ToLower(strings.Trim(name, " \t"))
		weight := 1.0
		if text, ok := strings.CutPrefix(strings.ToLower(strings.Trim(parameters, " \t")), "q="); ok {
			var err error
			if weight, err = strconv.ParseFloat(text, 64); err != nil || !(weight >= 0 && weight <= 1) {
				weight = 0
			}
		}
		if name == "*" {
			others = weight
		} else {
			weights[strings.TrimPrefix(name, "x-")] = weight
		}
	}
	plain := weights["identity"] // 0 if the client doesn't mention it: any other one is better
	best := func() (found int, most float64) {
		found = -1
		for i, e := range encodings {
			weight, ok := weights[e.name]
			if !ok {
				weight = others
			}
			if weight > most && weight >= plain {
				found, most = i, weight
			}
		}
		return found, most
	}
	for i, _ := best(); i >= 0; i, _ = best() {
		list = append(list, encodings[i])
		weights[encodings[i].name] = 0
	}
	return list
}
