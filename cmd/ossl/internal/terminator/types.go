package terminator

import (
	"path"
	"strings"
)

// defaultType is the type of files whose names tell none. Their contents aren't looked at: an upload with
// HTML in it would be a page of this site, with scripts.
const defaultType = "application/octet-stream"

// typeOf returns the type of a file by its name's extension, and otherwise "".
func typeOf(name string) string { return types[strings.ToLower(path.Ext(name))] }

// types are the types of the web's files by their extensions: nginx's mime.types, and newer types
// from IANA's registry. The host's tables aren't used, so that all hosts give the same types.
var types = typeTable(map[string]string{
	"text/html; charset=utf-8":                "html htm shtml",
	"text/css; charset=utf-8":                 "css",
	"text/javascript; charset=utf-8":          "js mjs cjs",
	"text/plain; charset=utf-8":               "txt text log conf ini md5 sha256 sha512 asc",
	"text/markdown; charset=utf-8":            "md markdown",
	"text/csv; charset=utf-8":                 "csv",
	"text/xml; charset=utf-8":                 "xml xsl xsd",
	"text/calendar; charset=utf-8":            "ics",
	"text/vcard; charset=utf-8":               "vcf",
	"text/vtt; charset=utf-8":                 "vtt",
	"text/x-component":                        "htc",
	"text/mathml":                             "mml",
	"image/avif":                              "avif",
	"image/bmp":                               "bmp",
	"image/gif":                               "gif",
	"image/heic":                              "heic",
	"image/jpeg":                              "jpeg jpg jpe",
	"image/jxl":                               "jxl",
	"image/png":                               "png",
	"image/apng":                              "apng",
	"image/svg+xml":                           "svg",
	"image/tiff":                              "tif tiff",
	"image/vnd.microsoft.icon":                "ico cur",
	"image/webp":                              "webp",
	"font/otf":                                "otf",
	"font/ttf":                                "ttf",
	"font/collection":                         "ttc",
	"font/woff":                               "woff",
	"font/woff2":                              "woff2",
	"application/vnd.ms-fontobject":           "eot",
	"application/atom+xml":                    "atom",
	"application/rss+xml":                     "rss",
	"application/xhtml+xml":                   "xhtml",
	"application/json":                        "json map",
	"application/ld+json":                     "jsonld",
	"application/geo+json":                    "geojson",
	"application/manifest+json":               "webmanifest",
	"application/wasm":                        "wasm",
	"application/toml":                        "toml",
	"application/yaml":                        "yaml yml",
	"application/pdf":                         "pdf",
	"application/postscript":                  "ps eps ai",
	"application/rtf":                         "rtf",
	"application/epub+zip":                    "epub",
	"application/gzip":                        "gz tgz",
	"application/zstd":                        "zst",
	"application/x-bzip2":                     "bz2",
	"application/x-xz":                        "xz",
	"application/x-7z-compressed":             "7z",
	"application/x-tar":                       "tar",
	"application/zip":                         "zip",
	"application/java-archive":                "jar war ear",
	"application/vnd.android.package-archive": "apk",
	"application/pem-certificate-chain":       "pem",
	"application/pkix-cert":                   "cer crt",
	"application/pkix-crl":                    "crl",
	"application/msword":                      "doc",
	"application/vnd.ms-excel":                "xls",
	"application/vnd.ms-powerpoint":           "ppt",
	"application/vnd.openxmlformats-officedocument.wordprocessingml.document":   "docx",
	"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet":         "xlsx",
	"application/vnd.openxmlformats-officedocument.presentationml.presentation": "pptx",
	"application/vnd.oasis.opendocument.text":                                   "odt",
	"application/vnd.oasis.opendocument.spreadsheet":                            "ods",
	"application/vnd.oasis.opendocument.presentation":                           "odp",
	"application/vnd.google-earth.kml+xml":                                      "kml",
	"application/vnd.google-earth.kmz":                                          "kmz",
	"application/vnd.apple.mpegurl":                                             "m3u8",
	"application/dash+xml":                                                      "mpd",
	"audio/aac":                                                                 "aac",
	"audio/flac":                                                                "flac",
	"audio/midi":                                                                "mid midi",
	"audio/mp4":                                                                 "m4a",
	"audio/mpeg":                                                                "mp3",
	"audio/ogg":                                                                 "ogg oga opus",
	"audio/wav":                                                                 "wav",
	"audio/webm":                                                                "weba",
	"video/3gpp":                                                                "3gpp 3gp",
	"video/mp2t":                                                                "ts",
	"video/mp4":                                                                 "mp4 m4v",
	"video/mpeg":                                                                "mpeg mpg",
	"video/ogg":                                                                 "ogv",
	"video/quicktime":                                                           "mov",
	"video/webm":                                                                "webm",
	"video/x-flv":                                                               "flv",
	"video/x-matroska":                                                          "mkv",
	"video/x-msvideo":                                                           "avi",
})

func typeTable(extensions map[string]string) map[string]string {
	table := map[string]string{}
	for kind, list := range extensions {
		for extension := range strings.FieldsSeq(list) {
			table["."+extension] = kind
		}
	}
	return table
}
