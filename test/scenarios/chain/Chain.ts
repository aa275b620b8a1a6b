import { Interface, type ParamType } from "ethers/abi"
import { compile } from "../lens/Solidity.js"

/** A log from the receipts of all blocks, decoded with the emitting contract's ABI. */
export interface Emitted {
  /** The number from which the contract derives all parameters: events are numbered in chain order. */
  readonly id: number
  readonly txHash: string
  readonly blockNumber: number
  readonly logIndex: number
  readonly address: string
  readonly topics: ReadonlyArray<string>
  readonly name: string
  readonly args: ReadonlyArray<unknown>
  readonly inputs: ReadonlyArray<ParamType>
}

export interface EventChain {
  readonly emitters: readonly [string, string]
  readonly nft: string
  /** The first block with events, and the last block. */
  readonly first: number
  readonly last: number
  /** Every event of the three contracts, in chain order, from a scan of all blocks. */
  readonly truth: ReadonlyArray<Emitted>
  /** The emitter's definitions for `useABI`. */
  readonly abi: ReadonlyArray<string>
}

export const blocks = 5_000
export const events = 10_000

type Params = ReadonlyArray<unknown>

interface Rpc {
  readonly one: <Result>(method: string, params: Params) => Promise<Result>
  /** Calls one method with each of these parameters in few requests; results in order. */
  readonly many: <Result>(method: string, list: ReadonlyArray<Params>) => Promise<ReadonlyArray<Result>>
}

const callsPerRequest = 500

interface Answered {
  readonly id: number
  readonly error?: unknown
  readonly result?: unknown
}

const rpcOf = (url: string): Rpc => {
  const post = async (body: unknown) => {
    const response = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body)
    })
    return JSON.parse(await response.text())
  }
  const resultOf = <Result>(method: string, { error, result }: Answered) => {
    if (error !== undefined) throw new Error(`${method}: ${JSON.stringify(error)}`)
    return result as Result
  }
  return {
    one: async (method, params) => resultOf(method, await post({ jsonrpc: "2.0", id: 1, method, params })),
    many: async <Result>(method: string, list: ReadonlyArray<Params>) => {
      const results: Array<Result> = []
      for (let from = 0; from < list.length; from += callsPerRequest) {
        const calls = list.slice(from, from + callsPerRequest)
        const answers: ReadonlyArray<Answered> = await post(
          calls.map((params, id) => ({ jsonrpc: "2.0", id, method, params }))
        )
        if (answers.length !== calls.length) throw new Error(`${method}: calls without an answer`)
        const inOrder = [...answers].sort((a, b) => a.id - b.id)
        for (const answer of inOrder) results.push(resultOf<Result>(method, answer))
      }
      return results
    }
  }
}

interface RawReceipt {
  readonly transactionHash: string
  readonly logs: ReadonlyArray<{
    readonly address: string
    readonly topics: ReadonlyArray<string>
    readonly data: string
    readonly logIndex: string
    readonly blockNumber: string
  }>
}

/** Transactions, each with `count` events; the last ones form the dense end of the chain. */
const plan = (): ReadonlyArray<{ readonly to: 0 | 1 | 2; readonly count: number }> => [
  ...Array.from({ length: 400 }, (_, i) => ({
    to: i % 8 === 7 ? (2 as const) : i % 3 === 2 ? (1 as const) : (0 as const),
    count: 20
  })),
  ...Array.from({ length: 8 }, (_, i) => ({ to: (i % 2) as 0 | 1, count: 250 }))
]

/** 10,000 events in 408 of 5,000 blocks of the anvil chain behind the URL. */
export const build = async (url: string): Promise<EventChain> => {
  const { many, one: rpc } = rpcOf(url)
  const compiled = compile(new URL("Emitter.sol", import.meta.url))
  const [from = ""] = await rpc<ReadonlyArray<string>>("eth_accounts", [])
  /** Anvil returns a hash before it mines the transaction. */
  const mined = async (hash: string) => {
    for (let looks = 0; looks < 1_000; looks++) {
      const found = await rpc<{ contractAddress: string; status: string } | null>(
        "eth_getTransactionReceipt",
        [hash]
      )
      if (found !== null) return found
    }
    throw new Error("a transaction of the plan is not mined")
  }
  const send = async (to: string | undefined, data: string) => {
    const gas = "0x1c9c380"
    const hash = await rpc<string>("eth_sendTransaction", [
      { from, data, gas, ...(to !== undefined && { to }) }
    ])
    const receipt = await mined(hash)
    if (receipt.status !== "0x1") throw new Error("a transaction of the plan failed")
    return receipt.contractAddress
  }
  const emitter = compiled("Emitter")
  const deployed = [
    await send(undefined, emitter.code),
    await send(undefined, emitter.code),
    await send(undefined, compiled("Nft").code)
  ]
  const emitterAbi = new Interface(emitter.abi)
  const head = async () => Number(await rpc<string>("eth_blockNumber", []))
  const first = (await head()) + 1
  const last = first + blocks - 1
  let id = 0
  for (const [turn, { count, to }] of plan().entries()) {
    await send(deployed[to], emitterAbi.encodeFunctionData("emitMany", [id, count]))
    id += count
    const target = turn < 400 ? first + Math.floor(((turn + 1) * (blocks - 100)) / 400) : await head()
    const empty = target - (await head())
    if (empty > 0) await rpc("anvil_mine", [`0x${empty.toString(16)}`])
  }
  await rpc("anvil_mine", [`0x${(last - (await head())).toString(16)}`])

  const interfaces = new Map<string, Interface>(
    deployed.map((address, i) => [
      address.toLowerCase(),
      i < 2 ? emitterAbi : new Interface(compiled("Nft").abi)
    ])
  )
  const shaped = emitterAbi.getEvent("Shaped")
  const receipts = await many<ReadonlyArray<RawReceipt>>(
    "eth_getBlockReceipts",
    Array.from({ length: blocks }, (_, i) => [`0x${(first + i).toString(16)}`])
  )
  let nextId = 0
  const truth = receipts.flat().flatMap(({ logs, transactionHash }) =>
    logs.map((log): Emitted => {
      const contract = interfaces.get(log.address)
      const parsed = contract?.parseLog(log)
      const anonymous = parsed === null && contract === emitterAbi && shaped !== null
      const name = anonymous ? "Shaped" : parsed?.name
      const args = anonymous ? emitterAbi.decodeEventLog(shaped, log.data, log.topics) : parsed?.args
      const inputs = anonymous ? shaped.inputs : parsed?.fragment.inputs
      if (name === undefined || args === undefined || inputs === undefined)
        throw new Error("a log that no contract here emits")
      return {
        id: nextId++,
        txHash: transactionHash,
        blockNumber: Number(log.blockNumber),
        logIndex: Number(log.logIndex),
        address: log.address,
        topics: log.topics,
        name,
        args: [...args],
        inputs
      }
    })
  )
  const [one = "", two = "", nft = ""] = deployed
  const abi = emitterAbi.fragments
    .filter(({ type }) => type === "event")
    .map((fragment) => fragment.format("full"))
  return { emitters: [one, two], nft, first, last, truth, abi }
}
