import * as Brand from "effect/Brand"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Event from "../../../domain/abi/Event.js"
import type { EventFilter } from "../../../domain/abi/EventFilter.js"
import * as BlockReference from "../../chain/BlockReference.js"
import * as Connection from "../../chain/Connection.js"
import * as EventQuery from "../../chain/logs/EventQuery.js"
import * as EventReader from "../../chain/logs/EventReader.js"
import { type Failure, invalidAt, unprocessable } from "../../failures/Failure.js"
import * as Reasons from "../../failures/Reasons.js"
import * as Span from "../../observe/Span.js"
import type { ChainClient, Header } from "../../ports/chain/ChainRpc.js"
import { Networks } from "../../ports/Networks.js"
import type { AccountId } from "../../ports/Tenants.js"
import { Watches } from "../../ports/Watches.js"
import type { Caller } from "../../request/Caller.js"
import { optional } from "../../request/Fields.js"
import * as Changes from "../../watches/Changes.js"
import * as Cursor from "../../watches/Cursor.js"
import * as Watch from "./Watch.js"

/** Most characters of a watch's specification as JSON. */
const mostCharacters = 65_536

/** An account without network settings. */
const nobody = Brand.nominal<AccountId>()("")

export const Request = Schema.Struct({
  webhookId: Schema.String.annotate({ description: "The account's webhook that receives the events." }),
  contracts: EventQuery.Request.fields.contracts,
  eventName: EventQuery.Request.fields.eventName,
  eventDef: optional(
    Schema.String.annotate({
      description:
        "Definition of an event, for example event Deposit(address indexed from, uint256 amount). It need not be registered."
    })
  ),
  fields: EventQuery.Request.fields.fields,
  fromBlock: optional(
    Schema.String.annotate({
      description:
        "The first block whose events are delivered: a number, hex or decimal, at most 1,000,000 blocks from the newest one, or a tag as in /filterEvent. Default: the next block."
    })
  ),
  confirmations: optional(
    Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)).annotate({
      description:
        "Blocks, the event's own included, after which the event is delivered; at most 64, or the settledDepth of the chain if that is greater. With 1 the event is delivered as soon as a block includes it.",
      message: "expected a whole number of blocks, 1 or more"
    }),
    1
  ),
  rpc: EventQuery.Request.fields.rpc,
  chainId: EventQuery.Request.fields.chainId,
  useABI: EventQuery.Request.fields.useABI
}).annotate({ identifier: "AddWatchRequest" })
export type Request = typeof Request.Type

export const Response = Watch.Shown
export type Response = typeof Response.Type

/** The filters of the selected events; an event definition in the request counts as registered. */
const filtersOf = Effect.fnUntraced(function* (
  caller: Caller,
  { eventDef, eventName, fields, useABI = [], contracts }: Request
) {
  const given = eventDef === undefined ? null : Event.parse(eventDef)
  const filters = yield* EventQuery.filters(caller, {
    ...(contracts !== undefined && { contracts }),
    ...(eventDef !== undefined && { eventDef }),
    ...(eventName !== undefined && { eventName }),
    ...(fields !== undefined && { fields }),
    useABI: given !== null && Result.isSuccess(given) ? [...useABI, given.success.canonical] : useABI
  })
  return filters.some(({ definition }) => definition.anonymous)
    ? yield* invalidAt(eventDef === undefined ? "eventName" : "eventDef", "anonymous events are not watched")
    : filters
})

const blockOf = Effect.fnUntraced(function* (
  chain: ChainClient,
  head: Header,
  text: string | undefined,
  refusal: ReturnType<typeof Connection.refusal>
) {
  if (text === undefined) return head.number + 1n
  const block = yield* Effect.fromResult(
    Result.mapError(BlockReference.parse(text), (message) => invalidAt("fromBlock", message))
  )
  if (block === "latest") return head.number
  const number =
    typeof block === "bigint"
      ? block
      : ((yield* Effect.mapError(chain.block(block), refusal))?.number ?? head.number)
  const distance = number > head.number ? number - head.number : head.number - number
  return distance > EventReader.maxBlocks
    ? yield* invalidAt(
        "fromBlock",
        `expected a block at most ${EventReader.maxBlocks} from the newest one, ${head.number}`
      )
    : number
})

/** The highest block for which every block number that a watch may start with is exact. */
const newestBlock = BigInt(Number.MAX_SAFE_INTEGER) - EventReader.maxBlocks

const noHead = (trust: Connection.Connection["trust"]): Failure =>
  trust === "caller"
    ? unprocessable("node_refused", [{ path: "rpc", message: Reasons.text("nodeWithoutBlock") }])
    : unprocessable("node_refused", [{ path: "", message: Reasons.text("operatorNodeWithoutBlock") }])

/** The node's owner. An account that has its own operator's node shares it with no other account. */
const nodeOf = Effect.fnUntraced(function* (
  { principal: { accountId } }: Caller,
  { profile, rpc, trust }: Connection.Connection
) {
  const { chainId } = profile
  if (trust === "caller") return { chainId, accountId, rpc }
  const everybodys = yield* (yield* Networks).profile(nobody, chainId)
  const isOwn = everybodys?.rpc == null || Redacted.value(everybodys.rpc) !== Redacted.value(rpc)
  return { chainId, accountId: isOwn ? accountId : null, rpc: null }
})

/** Whether the filter matches all events of a name, whatever their indexed fields are. */
const isBroad = ({ topics }: EventFilter): boolean => topics.slice(1).every((wanted) => wanted === null)

/**
 * Adds a watch: a webhook receives events from a block on. The log of changes names `requestId` of the caller as the
 * author; the command line is `operator`.
 */
export const run = Effect.fnUntraced(
  function* (caller: Caller, request: Request) {
    if (!Changes.isId(request.webhookId))
      return yield* invalidAt("webhookId", "the account has no such webhook")
    const filters = yield* filtersOf(caller, request)
    const spec = {
      contracts: [...new Set(request.contracts ?? [])],
      events: filters.map(({ definition }) => definition.canonical),
      fields: request.fields ?? {}
    }
    if (JSON.stringify(spec).length > mostCharacters)
      return yield* invalidAt("fields", `the watch is longer than ${mostCharacters} characters`)
    const connection = yield* Connection.open(caller, request, "rpc")
    const { chain, profile, trust } = connection
    const { confirmations = 1 } = request
    const most = Cursor.depthOf(profile)
    if (confirmations > most) return yield* invalidAt("confirmations", `expected at most ${most}`)
    const refusal = Connection.refusal(trust, "rpc")
    const head = yield* Effect.mapError(chain.header("latest"), refusal)
    if (head === null || head.number > newestBlock) return yield* noHead(trust)
    const watches = yield* Watches
    const actor = Watch.actorOf(caller)
    const watch = {
      accountId: actor.accountId,
      webhookId: request.webhookId,
      node: yield* nodeOf(caller, connection),
      spec,
      isBroad: filters.some(isBroad),
      confirmations,
      fromBlock: yield* blockOf(chain, head, request.fromBlock, refusal)
    }
    return Watch.shown(yield* Changes.find(actor, yield* watches.add(watch, actor.by)))
  },
  Watch.toFailure,
  Span.named("AddWatch")
)
