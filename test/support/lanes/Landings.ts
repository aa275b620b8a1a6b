import * as Effect from "effect/Effect"
import { AbiCoder, Interface } from "ethers"
import {
  type Call,
  type ChainClient,
  ChainRpcError,
  type FoundLog,
  type Receipt
} from "../../../src/application/ports/chain/ChainRpc.js"
import * as UserOperation from "../../../src/domain/erc4337/UserOperation.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Keccak from "../../../src/domain/primitives/Keccak.js"

export const entryPoint = Address.unsafe("0x0000000071727De22E5E9d8BAf0edAc6f37da032")
const paymaster = `0x${"5a".repeat(20)}`

/** Default reply to a call: a zero word. */
const nothing = Hex.unsafe(`0x${"00".repeat(32)}`)

const bare = {
  success: true,
  gasUsed: 21_000n,
  cumulativeGasUsed: 21_000n,
  effectiveGasPrice: 1n,
  from: Address.zero
}

const events = new Interface([
  "event UserOperationEvent(bytes32 indexed userOpHash, address indexed sender, address indexed paymaster, uint256 nonce, bool success, uint256 actualGasCost, uint256 actualGasUsed)"
])

/** The `configuration()` of a wallet with this number of earlier configurations. */
const configurationOf = (epoch: bigint): Hex.Hex =>
  Hex.unsafe(
    AbiCoder.defaultAbiCoder().encode(
      ["(uint8,uint8,address[],(bytes32,bytes32)[])", "uint64"],
      [[1, 1, [`0x${"0e".repeat(20)}`], []], epoch + 1n]
    )
  )

/** The transaction that lands an op on this chain. */
export const txHashOf = (userOpHash: string): Hex.Bytes32 => Keccak.hashText(`tx of ${userOpHash}`)

/** A chain with a block every ten seconds, on which ops land. */
export const makeChain = () => {
  let head = 0n
  let silent = false
  let stripped = false
  let hidden = false
  let said: ReadonlyArray<{ readonly word: Hex.Hex; readonly from: bigint }> = [{ word: nothing, from: 0n }]
  let configured: ReadonlyArray<{ readonly data: Hex.Hex; readonly from: bigint }> = []
  let landed: ReadonlyArray<FoundLog> = []
  /** Data of transactions, by hash. */
  const bundles = new Map<string, Hex.Hex>()
  /** First block replaced by a reorganisation; hashes differ from there on. */
  let forkedAt: bigint | null = null
  let forks = 0
  /** Number of blocks that the node lags. */
  let behind = 0n
  /** Number of blocks that the node lags when it serves logs and their block. */
  let logsBehind = 0n
  let isAskedForLogs = false
  /** Number of blocks that the node lags when it serves calls at the latest block. */
  let callsBehind = 0n
  const block = (number: bigint) => ({
    number,
    hash: Keccak.hashText(
      forkedAt === null || number < forkedAt ? `block ${number}` : `block ${number} of fork ${forks}`
    ),
    timestamp: Number(number) * 10,
    gasLimit: 30_000_000n,
    baseFeePerGas: 1n
  })
  const answer = <A>(make: () => A) =>
    Effect.suspend(() =>
      silent
        ? Effect.fail(new ChainRpcError({ reason: "unreachable", origin: "http://node", message: "silent" }))
        : Effect.sync(make)
    )
  let isWithoutLogs = false
  const latest = () => head - behind
  const shown = () => (hidden ? [] : landed.filter(({ blockNumber }) => blockNumber <= latest()))
  const client = {
    origin: "http://node",
    receipt: (txHash: unknown) =>
      answer((): Receipt | null => {
        const logs = shown().filter((log) => log.txHash === txHash)
        const [first] = logs
        if (first === undefined) return null
        const { blockHash, blockNumber } = first
        return { ...bare, txHash: first.txHash, blockNumber, blockHash, logs: stripped ? [] : logs }
      }),
    call: ({ to }: Call, _: unknown, at: bigint | "latest" = "latest") =>
      answer(() => {
        const isThere = ({ from }: { readonly from: bigint }) =>
          from <= (at === "latest" ? latest() - callsBehind : at)
        const configuration = to === entryPoint ? undefined : configured.findLast(isThere)
        return { success: true, data: configuration?.data ?? said.findLast(isThere)?.word ?? nothing }
      }),
    block: (tag: unknown) =>
      answer(() => {
        const withLogs = isAskedForLogs && tag === "latest"
        isAskedForLogs = false
        const number = typeof tag === "bigint" ? tag : latest() - (withLogs ? logsBehind : 0n)
        return number > latest() ? null : block(number)
      }),
    transaction: (txHash: string) =>
      answer(() => {
        const data = bundles.get(txHash)
        return data === undefined ? null : { txHash, data }
      }),
    logs: ({
      fromBlock,
      toBlock,
      topics
    }: {
      fromBlock: bigint
      toBlock: bigint | "latest"
      topics: ReadonlyArray<unknown>
    }) =>
      isWithoutLogs
        ? Effect.fail(
            new ChainRpcError({ reason: "unsupported", origin: "http://node", message: "method not found" })
          )
        : answer(() => {
            isAskedForLogs = true
            setImmediate(() => {
              isAskedForLogs = false
            })
            return shown().filter(
              (log) =>
                !stripped &&
                log.blockNumber <= latest() - logsBehind &&
                log.blockNumber >= fromBlock &&
                (toBlock === "latest" || log.blockNumber <= toBlock) &&
                topics.every(
                  (some, place) =>
                    some === null || (some as ReadonlyArray<string>).includes(String(log.topics[place]))
                )
            )
          })
  } as unknown as ChainClient
  const stranger = { sender: `0x${"aa".repeat(20)}`, nonce: 0n }
  const land = (
    userOpHash: string,
    cost: bigint,
    at = head,
    { nonce, sender, success = true }: Partial<{ success: boolean }> & typeof stranger = stranger
  ) => {
    const { data, topics } = events.encodeEventLog("UserOperationEvent", [
      userOpHash,
      sender,
      paymaster,
      nonce,
      success,
      cost,
      100n
    ])
    landed = [
      ...landed,
      {
        address: entryPoint,
        topics: topics.map((topic) => Hex.unsafe32(topic)),
        data: Hex.unsafe(data),
        logIndex: landed.length,
        txHash: txHashOf(userOpHash),
        blockNumber: at,
        blockHash: block(at).hash
      }
    ]
  }
  return {
    client,
    mine: (blocks: number) => {
      head += BigInt(blocks)
    },
    /** Defaults to the latest block. */
    land,
    /** Lands an op of that EntryPoint in its own bundle, shown by the node or not. Returns the hash. */
    landOp: (op: UserOperation.UserOperation, chainId: bigint, at = head, isShown = true) => {
      const userOpHash = UserOperation.hash("v0.7", entryPoint, chainId, op)
      land(userOpHash, 1n, at, op)
      if (isShown)
        bundles.set(txHashOf(userOpHash), UserOperation.handleOps("v0.7", [op], Address.unsafe(paymaster)))
      return userOpHash
    },
    /** A reorganisation replaces the blocks from the first landing on; a node may keep its receipts. */
    undo: (keepsReceipts = false) => {
      for (const { blockNumber } of landed)
        if (forkedAt === null || blockNumber < forkedAt) forkedAt = blockNumber
      forks += 1
      if (!keepsReceipts) landed = []
    },
    /** Its node lags that many blocks from now on. */
    fallBehind: (blocks: number) => {
      behind = BigInt(blocks)
    },
    /** Behind a load balancer: requests that include a log query go to a node that lags that many blocks. */
    fallBehindWithLogs: (blocks: number) => {
      logsBehind = BigInt(blocks)
    },
    /** Likewise for calls at the latest block. */
    fallBehindWithCalls: (blocks: number) => {
      callsBehind = BigInt(blocks)
    },
    /** Every call returns this word, at every block or from a block on. */
    say: (word: bigint, from = 0n) => {
      const answered = { word: Hex.unsafe(`0x${word.toString(16).padStart(64, "0")}`), from }
      said = from === 0n ? [answered] : [...said, answered]
    },
    /** The wallets have this epoch's configuration from a block on. */
    configure: (epoch: bigint, from: bigint) => {
      configured = [...configured, { data: configurationOf(epoch), from }]
    },
    /** Hides or shows landings. */
    hide: (now: boolean) => {
      hidden = now
    },
    /** The transactions were mined without effect, as if reverted. */
    strip: () => {
      stripped = true
    },
    /** Refuses or serves log queries. */
    refuseLogs: (now: boolean) => {
      isWithoutLogs = now
    },
    fallSilent: (now: boolean) => {
      silent = now
    }
  }
}
