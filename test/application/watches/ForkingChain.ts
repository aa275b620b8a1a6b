import * as Effect from "effect/Effect"
import { id } from "ethers/hash"
import {
  type BlockTag,
  type ChainClient,
  ChainRpcError,
  type FoundLog,
  type Header,
  type LogFilter
} from "../../../src/application/ports/chain/ChainRpc.js"
import type { Address } from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as ChainMemory from "../../support/memory/ChainRpc.js"

export const origin = "http://127.0.0.1:8545"

interface Block extends Header {
  readonly logs: ReadonlyArray<FoundLog>
}

/** A log of a future block. */
export interface Log {
  readonly address: Address
  readonly topics: ReadonlyArray<Hex.Bytes32>
  readonly data?: Hex.Hex
}

type Asked = Pick<LogFilter, "address" | "topics">

const matches = ({ address, topics }: Asked, log: FoundLog): boolean =>
  (address === undefined || address.includes(log.address)) &&
  topics.every((wanted, place) => {
    const topic = log.topics[place]
    return (
      wanted === null ||
      (topic !== undefined && (typeof wanted === "string" ? wanted === topic : wanted.includes(topic)))
    )
  })

/** A chain whose blocks a test writes and takes back. */
export class ForkingChain {
  blocks: ReadonlyArray<Block> = []
  readonly asked: Array<{ readonly method: string; readonly filter?: Asked; readonly blocks?: bigint }> = []
  /** Chain of the next answer: another backend of a balanced node may lag or be on an abandoned fork. */
  view: () => ReadonlyArray<Block> = () => this.blocks
  /** Reason of its failure to reply. */
  broken: ChainRpcError["reason"] | null = null
  /** Most blocks whose logs it returns in one reply. */
  mostBlocks: bigint | null = null
  private made = 0

  constructor(blocks: number) {
    for (let n = 0; n < blocks; n++) this.mine([])
  }

  get head(): Block {
    const head = this.blocks.at(-1)
    if (head === undefined) throw new Error("the chain has no block")
    return head
  }

  mine(logs: ReadonlyArray<Log>): void {
    this.made += 1
    const number = BigInt(this.blocks.length)
    const hash = Hex.unsafe32(id(`block ${number} made ${this.made}`))
    const parentHash = this.blocks.at(-1)?.hash ?? Hex.unsafe32(`0x${"00".repeat(32)}`)
    const found = logs.map(
      ({ address, data, topics }, logIndex): FoundLog => ({
        address,
        topics,
        data: data ?? Hex.empty,
        logIndex,
        txHash: Hex.unsafe32(id(`transaction ${logIndex} of ${hash}`)),
        blockNumber: number,
        blockHash: hash
      })
    )
    this.blocks = [...this.blocks, { number, hash, parentHash, logs: found }]
  }

  /** Takes the newest blocks back; the chain is shorter until others are mined. */
  takeBack(count: number): void {
    this.blocks = this.blocks.slice(0, this.blocks.length - count)
  }

  get client(): ChainClient {
    const node = Effect.runSync(ChainMemory.make({ chainId: 31_337n }))
    const answer = <A>(method: string, of: () => A | ChainRpcError, about: object = {}) =>
      Effect.suspend(() => {
        this.asked.push({ method, ...about })
        const { broken } = this
        const result = broken === null ? of() : new ChainRpcError({ reason: broken, origin, message: "away" })
        return result instanceof ChainRpcError ? Effect.fail(result) : Effect.succeed(result)
      })
    const refused = (message: string) =>
      new ChainRpcError({ reason: "rejected", origin, message, rpcCode: -32_000 })
    const numberOf = (tag: BlockTag, blocks: ReadonlyArray<Block>): number =>
      typeof tag === "bigint" ? Number(tag) : blocks.length - 1
    return {
      ...node.client(origin),
      header: (tag) =>
        answer("header", () => {
          const blocks = this.view()
          return blocks[numberOf(tag, blocks)] ?? null
        }),
      logs: (filter) =>
        answer(
          "logs",
          () => {
            const blocks = this.view()
            const [from, to] = [numberOf(filter.fromBlock, blocks), numberOf(filter.toBlock, blocks)]
            if (this.mostBlocks !== null && BigInt(to - from + 1) > this.mostBlocks)
              return refused(`block range too large: at most ${this.mostBlocks} blocks`)
            return blocks
              .slice(from, to + 1)
              .flatMap(({ logs }) => logs.filter((log) => matches(filter, log)))
          },
          { filter }
        ),
      logsOf: (hash, filter) =>
        answer(
          "logsOf",
          () =>
            this.view()
              .find((block) => block.hash === hash)
              ?.logs.filter((log) => matches(filter, log)) ?? refused("unknown block"),
          { filter }
        )
    }
  }
}
