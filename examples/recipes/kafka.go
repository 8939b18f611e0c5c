package recipes

import (
	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ossl-go/ossl"
)

// Franz returns a client of Kafka: franz-go.
func Franz(seeds []string, dialer *ossl.Dialer) (*kgo.Client, error) {
	return kgo.NewClient(kgo.SeedBrokers(seeds...), kgo.Dialer(dialer.DialContext))
}

// Sarama returns a client of Kafka: sarama. Its hook for proxies takes any dialer.
func Sarama(seeds []string, dialer *ossl.Dialer) (sarama.Client, error) {
	settings := sarama.NewConfig()
	settings.Net.Proxy.Enable = true
	settings.Net.Proxy.Dialer = dialer
	return sarama.NewClient(seeds, settings)
}
