import castellan.ApiClient;
import castellan.ApiException;
import castellan.api.OperationsApi;
import castellan.api.WalletsApi;
import castellan.model.Account;
import castellan.model.CreateRequest;
import castellan.model.ExecuteRequest;
import castellan.model.Operation;
import castellan.model.PredictRequest;
import castellan.model.PredictRequestAccounts;
import castellan.model.PredictSettings;
import castellan.model.RequestState;
import castellan.model.SubmitSettings;
import castellan.model.TransactionResult;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/** Mints tokens with the generated client: once, although it asks twice. */
class Smoke {
  /** Executes once, however often it is called with this key. A lost process calls it again. */
  static TransactionResult execute(OperationsApi operations, ExecuteRequest request, String key) throws ApiException {
    var answer = operations.execute(request, key, null, "respond-async");
    if (answer.getState() == TransactionResult.StateEnum.PENDING) {
      while (operations.getRequest(answer.getRequestId(), "30").getState() == RequestState.StateEnum.PENDING) {}
      answer = operations.execute(request, key, null, null);
    }
    return answer;
  }

  static void check(boolean holds, String problem) {
    if (!holds) throw new IllegalStateException(problem);
  }

  public static void main(String[] args) throws Exception {
    JsonNode dev = new ObjectMapper().readTree(Files.readString(Path.of(".castellan/dev.json")));
    URI url = URI.create(dev.get("baseUrl").textValue());
    String apiKey = dev.get("apiKeys").get("pro").textValue();

    ApiClient client = new ApiClient()
        .setScheme(url.getScheme())
        .setHost(url.getHost())
        .setPort(url.getPort())
        .setRequestInterceptor(request -> request.header("X-API-Key", apiKey));
    WalletsApi wallets = new WalletsApi(client);
    OperationsApi operations = new OperationsApi(client);

    ObjectMapper json = client.getObjectMapper();
    SubmitSettings settings = json.treeToValue(dev.get("settings"), SubmitSettings.class)
        .paymaster(dev.get("paymaster").textValue());
    PredictSettings where = json.treeToValue(dev.get("settings"), PredictSettings.class);

    var salt = new PredictRequestAccounts().salt("java").walletCustody(1L);
    String wallet = wallets.predict(new PredictRequest().addAccountsItem(salt).settings(where)).get(0).getWallet();
    var account = new Account().salt("java").walletCustody(1L);
    var creation = new CreateRequest().addAccountsItem(account).settings(settings);
    var created = wallets.create(creation, "create-java", null, null);
    check(created.getStatus() == 1, "not created: " + created);

    Operation mint = new Operation()
        .salt("java")
        .walletCustody(1L)
        .to(dev.get("token").textValue())
        .funcSignature("mint(address,uint256)")
        .funcParams(List.of(wallet, "1000"));
    ExecuteRequest request = new ExecuteRequest().addOperationsItem(mint).settings(settings);
    TransactionResult first = execute(operations, request, "mint-java");
    TransactionResult again = execute(operations, request, "mint-java");
    check(first.getStatus() == 1 && first.getReturnData().get(0).get("0").getSuccess(), "not executed: " + first);
    check(again.getTxHash().equals(first.getTxHash()), "executed twice: " + again);

    ExecuteRequest other = new ExecuteRequest().operations(List.of(mint, mint)).settings(settings);
    try {
      operations.execute(other, "mint-java", null, null);
      throw new IllegalStateException("another body was accepted");
    } catch (ApiException failure) {
      String code = json.readTree(failure.getResponseBody()).get("code").textValue();
      System.out.println(json.writeValueAsString(Map.of("wallet", wallet, "txHash", first.getTxHash(), "code", code)));
    }
  }
}
