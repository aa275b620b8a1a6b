// Mints tokens with the generated client: once, although it asks twice.
package main

import (
	"castellan"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
)

type Dev struct {
	BaseURL   string
	Paymaster string
	Token     string
	APIKeys   struct{ Pro string }
	Settings  json.RawMessage
}

func must(err error) {
	if failure, answered := err.(castellan.GenericOpenAPIError); answered {
		log.Fatalf("%v: %s", failure, failure.Body())
	} else if err != nil {
		log.Fatal(err)
	}
}

// execute executes once, however often it is called with this key. A lost process calls it again.
func execute(client *castellan.APIClient, request castellan.ExecuteRequest, key string) castellan.TransactionResult {
	ctx := context.Background()
	send := client.OperationsApi.Execute(ctx).ExecuteRequest(request).IdempotencyKey(key)
	answer, _, err := send.Prefer("respond-async").Execute()
	must(err)
	if answer.GetState() == "pending" {
		for state := "pending"; state == "pending"; {
			request, _, err := client.OperationsApi.GetRequest(ctx, answer.GetRequestId()).Wait("30").Execute()
			must(err)
			state = request.State
		}
		answer, _, err = send.Execute()
		must(err)
	}
	return answer
}

func main() {
	text, err := os.ReadFile(".castellan/dev.json")
	must(err)
	dev := Dev{}
	must(json.Unmarshal(text, &dev))
	settings := castellan.SubmitSettings{}
	must(json.Unmarshal(dev.Settings, &settings))
	settings.SetPaymaster(dev.Paymaster)
	where := castellan.PredictSettings{}
	must(json.Unmarshal(dev.Settings, &where))

	configuration := castellan.NewConfiguration()
	configuration.Servers[0].URL = dev.BaseURL
	configuration.AddDefaultHeader("X-API-Key", dev.APIKeys.Pro)
	client := castellan.NewAPIClient(configuration)
	ctx := context.Background()

	salts := []castellan.PredictRequestAccounts{*castellan.NewPredictRequestAccounts("go", 1)}
	predicted, _, err := client.WalletsApi.Predict(ctx).
		PredictRequest(*castellan.NewPredictRequest(salts, where)).Execute()
	must(err)
	wallet := predicted[0].Wallet

	account := castellan.NewAccount(1)
	account.SetSalt("go")
	created, _, err := client.WalletsApi.Create(ctx).IdempotencyKey("create-go").
		CreateRequest(*castellan.NewCreateRequest([]castellan.Account{*account}, settings)).Execute()
	must(err)
	if created.GetStatus() != 1 {
		log.Fatalf("not created: %v", created)
	}

	mint := castellan.NewOperation(1, dev.Token, "mint(address,uint256)")
	mint.SetSalt("go")
	mint.SetFuncParams([]interface{}{wallet, "1000"})
	request := castellan.NewExecuteRequest([]castellan.Operation{*mint}, settings)
	first := execute(client, *request, "mint-go")
	again := execute(client, *request, "mint-go")
	results := first.GetReturnData()
	if first.GetStatus() != 1 || !results[0]["0"].Success {
		log.Fatalf("not executed: %v", first)
	}
	if again.GetTxHash() != first.GetTxHash() {
		log.Fatalf("executed twice: %v, %v", first, again)
	}

	other := castellan.NewExecuteRequest([]castellan.Operation{*mint, *mint}, settings)
	_, _, err = client.OperationsApi.Execute(ctx).ExecuteRequest(*other).IdempotencyKey("mint-go").Execute()
	failure, answered := err.(castellan.GenericOpenAPIError)
	if !answered {
		log.Fatalf("another body was accepted: %v", err)
	}
	problem := failure.Model().(castellan.BadRequest)

	out, err := json.Marshal(map[string]interface{}{
		"wallet": wallet, "txHash": first.GetTxHash(), "code": problem.Code,
	})
	must(err)
	fmt.Println(string(out))
}
