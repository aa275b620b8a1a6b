/** Words of nodes and vendors for a log query that is too large. */

export interface Asked {
  readonly from: bigint
  readonly to: bigint
  /** The node's limit, in blocks or in results. */
  readonly limit: number
}

export interface Wording {
  readonly code: number
  readonly message: string
}

export interface Vendor {
  readonly name: string
  /** Too many blocks. */
  readonly blocks: (asked: Asked) => Wording
  /** Too many results. */
  readonly results: (asked: Asked) => Wording
}

const hex = (value: bigint): string => `0x${value.toString(16)}`
const grouped = (value: number): string => value.toLocaleString("en")
const count = ({ from, to }: Asked): bigint => to - from + 1n
const lastOf = ({ from, limit }: Asked): bigint => from + BigInt(limit) - 1n
const middle = ({ from, to }: Asked): bigint => (from + to) / 2n

export const vendors: ReadonlyArray<Vendor> = [
  {
    name: "Alchemy",
    blocks: (asked) => ({
      code: -32600,
      message: `You can make eth_getLogs requests with up to a ${asked.limit} block range. Based on your parameters, this block range should work: [${hex(asked.from)}, ${hex(lastOf(asked))}]`
    }),
    results: (asked) => ({
      code: -32602,
      message: `Log response size exceeded. You can make eth_getLogs requests with up to a 2K block range and no limit on the response size, or you can request any block range with a cap of 10K logs in the response. Based on your parameters and the response size limit, this block range should work: [${hex(asked.from)}, ${hex(middle(asked))}]`
    })
  },
  {
    name: "Alchemy, free tier",
    blocks: (asked) => ({
      code: -32600,
      message: `Under the Free tier plan, you can make eth_getLogs requests with up to a ${asked.limit} block range. Based on your parameters, this block range should work: [${hex(asked.from)}, ${hex(lastOf(asked))}]. Upgrade to PAYG for expanded block range.`
    }),
    results: () => ({ code: -32000, message: "Query timeout exceeded. Consider reducing your block range." })
  },
  {
    name: "Infura",
    blocks: (asked) => ({
      code: -32602,
      message: `range ${asked.to - asked.from} exceeds limit of ${asked.limit}`
    }),
    results: (asked) => ({
      code: -32005,
      message: `query returned more than ${asked.limit} results. Try with this block range [${hex(asked.from)}, ${hex(middle(asked))}].`
    })
  },
  {
    name: "QuickNode",
    blocks: ({ limit }) => ({ code: -32614, message: `eth_getLogs is limited to a ${grouped(limit)} range` }),
    results: () => ({ code: -32000, message: "response is too big" })
  },
  {
    name: "Ankr",
    blocks: () => ({ code: -32000, message: "block range is too wide" }),
    results: ({ limit }) => ({ code: -32000, message: `too many logs: more than ${limit} matched` })
  },
  {
    name: "publicnode and Geth",
    blocks: ({ limit }) => ({ code: -32701, message: `exceed maximum block range: ${limit}` }),
    results: () => ({ code: -32002, message: "request timed out" })
  },
  {
    name: "Reth",
    blocks: ({ limit }) => ({ code: -32602, message: `query exceeds max block range ${limit}` }),
    results: (asked) => ({
      code: -32602,
      message: `query exceeds max results ${asked.limit}, retry with the range ${asked.from}-${middle(asked)}`
    })
  },
  {
    name: "Erigon",
    blocks: ({ limit }) => ({
      code: -32000,
      message: `query block range exceeds server limit, narrow your filter: ${limit}`
    }),
    results: ({ limit }) => ({
      code: -32000,
      message: `query returns too many logs, narrow your filter: ${limit}`
    })
  },
  {
    name: "Nethermind",
    blocks: (asked) => ({
      code: -32005,
      message: `Block range too large: ${count(asked)} blocks requested, maximum allowed is ${asked.limit} blocks`
    }),
    results: ({ limit }) => ({
      code: -32005,
      message: `Too many logs requested. Max logs per response is ${limit}.`
    })
  },
  {
    name: "Polygon bor",
    blocks: (asked) => ({
      code: -32000,
      message: `eth_getLogs block range too large, range: ${asked.to - asked.from}, max: ${asked.limit}`
    }),
    results: () => ({ code: -32000, message: "query timeout of 10 seconds exceeded" })
  },
  {
    name: "Base",
    blocks: () => ({ code: -32012, message: "requested range too large" }),
    results: () => ({ code: -32020, message: "backend response too large" })
  },
  {
    name: "Coinbase",
    blocks: ({ limit }) => ({ code: -32602, message: `please limit the query to at most ${limit} blocks` }),
    results: () => ({ code: -32602, message: "invalid params" })
  },
  {
    name: "dRPC",
    blocks: ({ limit }) => ({
      code: 35,
      message: `ranges over ${limit} blocks are not supported on freetier`
    }),
    results: ({ limit }) => ({ code: -32602, message: `query exceeds max results ${limit}` })
  },
  {
    name: "Blast",
    blocks: (asked) => ({
      code: -32600,
      message: `exceeds the range allowed for your plan (${count(asked)} > ${asked.limit})`
    }),
    results: () => ({ code: -32603, message: "response size should not greater than 10000000 bytes" })
  }
]
