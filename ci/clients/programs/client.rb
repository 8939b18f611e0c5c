# usage: ruby client.rb PORT CA VERSION FRESH REUSED
#
# FRESH requests by objects of their own, then one request, and REUSED more by the same object: Net::HTTP keeps the session of its
# last connection and offers it when it connects again, which "Connection: close" makes it do.
require "net/http"
require "openssl"

port, ca, version, fresh, reused = ARGV
VERSION = {"1.2" => OpenSSL::SSL::TLS1_2_VERSION, "1.3" => OpenSSL::SSL::TLS1_3_VERSION}.fetch(version)

def client(port, ca)
  http = Net::HTTP.new("localhost", port.to_i, nil)
  http.use_ssl = true
  http.ca_file = ca
  http.verify_mode = OpenSSL::SSL::VERIFY_PEER
  http.min_version = http.max_version = VERSION
  http
end

def get(http)
  request = Net::HTTP::Get.new("/")
  request["Connection"] = "close"
  response = http.request(request)
  raise "#{response.code} #{response.body.inspect}" unless response.code == "200" && response.body == "ok\n"
end

def seconds
  before = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  yield
  Process.clock_gettime(Process::CLOCK_MONOTONIC) - before
end

first = seconds { fresh.to_i.times { client(port, ca).start { |http| get(http) } } }
client(port, ca).start do |http|
  get(http)
  second = seconds { reused.to_i.times { get(http) } }
  puts format("seconds %.6f %.6f resumed ?", first, second) # Net::HTTP doesn't say
end
