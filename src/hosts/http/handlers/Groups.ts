import * as GetReceipts from "../../../application/usecases/chain/GetReceipts.js"
import * as ReadContracts from "../../../application/usecases/chain/ReadContracts.js"
import * as FilterEvents from "../../../application/usecases/events/FilterEvents.js"
import * as GetEvents from "../../../application/usecases/events/GetEvents.js"
import * as ListNetworks from "../../../application/usecases/network/ListNetworks.js"
import * as CancelRequest from "../../../application/usecases/operations/CancelRequest.js"
import * as EstimateGas from "../../../application/usecases/operations/EstimateGas.js"
import * as ExecuteEncoded from "../../../application/usecases/operations/ExecuteEncoded.js"
import * as ExecuteOperations from "../../../application/usecases/operations/ExecuteOperations.js"
import * as ExecutePasskey from "../../../application/usecases/operations/ExecutePasskey.js"
import * as GetRequest from "../../../application/usecases/operations/GetRequest.js"
import * as ListRequests from "../../../application/usecases/operations/ListRequests.js"
import * as PasskeyHash from "../../../application/usecases/operations/PasskeyHash.js"
import * as StreamEvents from "../../../application/usecases/operations/StreamEvents.js"
import * as TransactSigner from "../../../application/usecases/operations/TransactSigner.js"
import * as Unstuck from "../../../application/usecases/operations/Unstuck.js"
import * as AddError from "../../../application/usecases/registry/AddError.js"
import * as AddEvent from "../../../application/usecases/registry/AddEvent.js"
import * as GetBundlerAddress from "../../../application/usecases/signing/GetBundlerAddress.js"
import * as GetSigner from "../../../application/usecases/signing/GetSigner.js"
import * as SignMessages from "../../../application/usecases/signing/SignMessages.js"
import * as CheckWallets from "../../../application/usecases/wallets/CheckWallets.js"
import * as CreateWallets from "../../../application/usecases/wallets/CreateWallets.js"
import * as PredictWallets from "../../../application/usecases/wallets/PredictWallets.js"
import * as AddWatch from "../../../application/usecases/watches/AddWatch.js"
import * as ChangeWatch from "../../../application/usecases/watches/ChangeWatch.js"
import * as GetWatch from "../../../application/usecases/watches/GetWatch.js"
import * as ListWatches from "../../../application/usecases/watches/ListWatches.js"
import * as RemoveWatch from "../../../application/usecases/watches/RemoveWatch.js"
import * as AddWebhook from "../../../application/usecases/webhooks/AddWebhook.js"
import * as ChangeWebhook from "../../../application/usecases/webhooks/ChangeWebhook.js"
import * as GetWebhook from "../../../application/usecases/webhooks/GetWebhook.js"
import * as ListDead from "../../../application/usecases/webhooks/ListDead.js"
import * as ListWebhooks from "../../../application/usecases/webhooks/ListWebhooks.js"
import * as Redeliver from "../../../application/usecases/webhooks/Redeliver.js"
import * as RemoveWebhook from "../../../application/usecases/webhooks/RemoveWebhook.js"
import * as RotateSecret from "../../../application/usecases/webhooks/RotateSecret.js"
import type { Handlers } from "./Handlers.js"

/** The use case behind every endpoint that needs a key, by the endpoint's name in the contract. */
export const handlers = {
  predict: PredictWallets.run,
  check: CheckWallets.run,
  create: CreateWallets.run,
  execute: ExecuteOperations.run,
  estimateGas: EstimateGas.run,
  executeEncoded: ExecuteEncoded.run,
  passkeyHash: PasskeyHash.run,
  executePasskey: ExecutePasskey.run,
  transactSigner: TransactSigner.run,
  unstuck: Unstuck.run,
  getRequest: GetRequest.run,
  streamEvents: StreamEvents.run,
  listRequests: ListRequests.run,
  cancelRequest: CancelRequest.run,
  read: ReadContracts.run,
  receipt: GetReceipts.run,
  filterEvent: FilterEvents.run,
  getEvents: GetEvents.run,
  addEvent: AddEvent.run,
  addError: AddError.run,
  sign: SignMessages.run,
  getSigner: GetSigner.run,
  getBundlerAddress: GetBundlerAddress.run,
  getBundlerAddressByGet: (caller) => GetBundlerAddress.run(caller, {}),
  listNetworks: ListNetworks.run,
  addWebhook: AddWebhook.run,
  listWebhooks: ListWebhooks.run,
  getWebhook: GetWebhook.run,
  changeWebhook: ChangeWebhook.run,
  removeWebhook: RemoveWebhook.run,
  rotateSecret: RotateSecret.run,
  listDead: ListDead.run,
  redeliver: Redeliver.run,
  addWatch: AddWatch.run,
  listWatches: ListWatches.run,
  getWatch: GetWatch.run,
  changeWatch: ChangeWatch.run,
  removeWatch: RemoveWatch.run
} satisfies Handlers
