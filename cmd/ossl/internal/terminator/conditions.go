package terminator

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// adjust changes the conditions and the ranges of a request for a file so that http.ServeContent, which
// answers it, does what RFC 9110 and nginx want.
func adjust(r *http.Request, modified time.Time, size int64) {
	if since := r.Header.Get("If-Modified-Since"); since != "" {
		// A file with an earlier date has been replaced by an older version, which the client doesn't have.
		if t, err := http.ParseTime(since); err != nil || t.Unix() != modified.Unix() {
			r.Header.Del("If-Modified-Since")
		}
	}
	if text := r.Header.Get("Range"); text != "" {
		if text = adjustRange(text, size); text == "" {
			r.Header.Del("Range")
		} else {
			r.Header.Set("Range", text)
		}
	}
}

// maxRanges bounds the parts of a file that a request may ask for. Each one costs a header of its
// own, and many small ones are no use to a client.
const maxRanges = 100

// adjustRange returns the ranges of a file that a Range header asks for: RFC 9110, section 14.1. It
// returns "" if the header has to be ignored: it has another unit, or too many ranges. Of one that is
// malformed, or of which no range can be satisfied, it returns a range after the end.
func adjustRange(text string, size int64) string {
	const unit = "bytes="
	if len(text) < len(unit) || !strings.EqualFold(text[:len(unit)], unit) || strings.Count(text, ",") >= maxRanges {
		return ""
	}
	unsatisfiable := fmt.Sprintf("%s%d-", unit, size)
	var ranges []string
	for part := range strings.SplitSeq(text[len(unit):], ",") {
		part = strings.Trim(part, " \t")
		if part == "" {
			continue // RFC 9110, section 5.6.1
		}
		first, last, ok := strings.Cut(part, "-")
		first, last = strings.TrimRight(first, " \t"), strings.TrimLeft(last, " \t")
		if !ok || first+last == "" || strings.Trim(first+last, "0123456789") != "" {
			return unsatisfiable
		}
		first, last = shortest(first), shortest(last)
		switch {
		case first != "" && last != "" && less(last, first):
			return unsatisfiable
		case first == "" && last == "0", tooLong(first):
			// No byte of the file.
		case tooLong(last) && first == "":
			ranges = append(ranges, "0-")
		case tooLong(last):
			ranges = append(ranges, first+"-")
		default:
			ranges = append(ranges, first+"-"+last)
		}
	}
	if ranges == nil {
		return unsatisfiable
	}
	return unit + strings.Join(ranges, ",")
}

// shortest returns a number without leading zeros.
func shortest(digits string) string {
	if short := strings.TrimLeft(digits, "0"); short != "" || digits == "" {
		return short
	}
	return "0"
}

// less compares numbers without leading zeros.
func less(a, b string) bool { return len(a) < len(b) || len(a) == len(b) && a < b }

// tooLong reports whether a number is larger than any file, and may be too large for an int64.
func tooLong(digits string) bool { return len(digits) > 18 }
