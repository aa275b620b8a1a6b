import * as Effect from "effect/Effect"
import * as EthersChainRpc from "../../../src/adapters/json-rpc/node/ChainRpc.js"
import * as ChainFacts from "../../../src/application/chain/ChainFacts.js"
import { ReceiptCache } from "../../../src/application/chain/ReceiptCache.js"
import type { AccountId } from "../../../src/application/ports/Tenants.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { bytesInUse } from "../Heap.js"

/**
 * Queries a caller's node with a new client each round for receipts, logs, code and return data, and keeps the parts
 * that the service keeps. Prints the memory in use at the end. Arguments: the node's URL, rounds of five answers.
 */

const [url = "", rounds = "1"] = process.argv.slice(2)

const account = "acme" as AccountId

const hash = (n: number) => Hex.unsafe32(`0x${n.toString(16).padStart(64, "0")}`)
const address = (n: number) => Address.unsafe(`0x${n.toString(16).padStart(40, "0")}`)

const asked = Effect.gen(function* () {
  const rpc = yield* EthersChainRpc.make({ egress: { allowLoopback: true } })
  const facts = ChainFacts.make()
  const receipts = new ReceiptCache()
  let answers = 0
  for (let n = 1; n <= Number(rounds); n++) {
    const chain = yield* rpc.connect(`${url}&n=${n}`, { account })
    const receipt = yield* chain.receipt(hash(n))
    if (receipt !== null) receipts.set(account, receipt)
    const logs = yield* chain.logs({ topics: [], fromBlock: 1n, toBlock: 1n })
    const code = yield* facts.code(chain, address(n))
    const validator = yield* facts.validatorOf(chain, address(n), hash(n))
    const { data } = yield* chain.call({ to: address(n), data: Hex.empty })
    answers += [receipt?.logs[0]?.data, logs[0]?.data, code, validator, data].filter(
      (text) => (text?.length ?? 0) > 8_000_000
    ).length
  }
  return { answers, inUse: bytesInUse(), receipts: receipts.get(account, hash(1)) === undefined }
})

console.log(JSON.stringify(await Effect.runPromise(Effect.scoped(asked))))
