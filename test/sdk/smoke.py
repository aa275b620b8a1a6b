"""Mints tokens with the generated client: once, although it asks twice."""
import json
import sys

import castellan
from castellan.rest import ApiException

dev = json.load(open(".castellan/dev.json"))
settings = {**dev["settings"], "paymaster": dev["paymaster"]}

configuration = castellan.Configuration(host=dev["baseUrl"], api_key={"X-API-Key": dev["apiKeys"]["pro"]})
client = castellan.ApiClient(configuration)
wallets = castellan.WalletsApi(client)
operations = castellan.OperationsApi(client)

salt = castellan.PredictRequestAccounts(salt="python", wallet_custody=1)
wallet = wallets.predict(castellan.PredictRequest(accounts=[salt], settings=dev["settings"]))[0].wallet
account = castellan.Account(salt="python", wallet_custody=1)
created = wallets.create(castellan.CreateRequest(accounts=[account], settings=settings), idempotency_key="create-python")
assert created.status == 1, created

mint = castellan.Operation(
    salt="python",
    wallet_custody=1,
    to=dev["token"],
    func_signature="mint(address,uint256)",
    func_params=[wallet, "1000"],
)
request = castellan.ExecuteRequest(operations=[mint], settings=settings)


def execute(request, key):
    """Executes once, however often it is called with this key. A lost process calls it again."""
    answer = operations.execute(request, idempotency_key=key, prefer="respond-async")
    if answer.state == "pending":
        while operations.get_request(answer.request_id, wait="30").state == "pending":
            pass
        answer = operations.execute(request, idempotency_key=key)
    return answer


first = execute(request, "mint-python")
again = execute(request, "mint-python")
assert first.status == 1 and first.return_data[0]["0"].success, first
assert again.tx_hash == first.tx_hash, again

try:
    operations.execute(castellan.ExecuteRequest(operations=[mint, mint], settings=settings), idempotency_key="mint-python")
    sys.exit("another body was accepted")
except ApiException as failure:
    problem = json.loads(failure.body)

print(json.dumps({"wallet": wallet, "txHash": first.tx_hash, "code": problem["code"]}))
