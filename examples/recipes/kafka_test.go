package recipes_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ossl-go/ossl/examples/recipes"
	"github.com/ossl-go/ossl/internal/recipetest"
)

const topic = "greetings"

func startKafka(t *testing.T, site *recipetest.Site) {
	t.Helper()
	cluster, err := kfake.NewCluster(
		kfake.NumBrokers(1), kfake.SeedTopics(1, topic),
		kfake.TLS(site.Config), kfake.ListenFn(func(_, _ string) (net.Listener, error) { return site.Listener, nil }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
}

func TestFranz(t *testing.T) {
	recipetest.Recipe{
		Client: "franz-go", Server: "franz-go's kfake, crypto/tls", Start: startKafka,
		Use: func(ctx context.Context, config *tls.Config, addr string) error {
			client, err := recipes.Franz([]string{addr}, recipes.Dialer(config))
			if err != nil {
				return err
			}
			defer client.Close()
			return client.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte("hello")}).FirstErr()
		},
	}.Run(t)
}

func TestSarama(t *testing.T) {
	recipetest.Recipe{
		Client: "sarama", Server: "franz-go's kfake, crypto/tls", Start: startKafka,
		Use: func(_ context.Context, config *tls.Config, addr string) error {
			client, err := recipes.Sarama([]string{addr}, recipes.Dialer(config))
			if err != nil {
				return err
			}
			client.Config().Producer.Return.Successes = true // as the producer demands
			producer, err := sarama.NewSyncProducerFromClient(client)
			if err != nil {
				return errors.Join(err, client.Close())
			}
			_, _, err = producer.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder("hello")})
			if err != nil {
				err = fmt.Errorf("send: %w", err)
			}
			return errors.Join(err, producer.Close(), client.Close())
		},
	}.Run(t)
}
