/** A node that lags by some blocks: its calls and its view. */

interface Call {
  readonly id: unknown
  readonly method: string
  readonly params?: ReadonlyArray<unknown>
}

interface Message {
  readonly id: unknown
  readonly result?: unknown
}

const tags = new Set(["latest", "pending", "safe", "finalized"])

const quantity = (block: bigint): string => `0x${block.toString(16)}`

const olden = (value: unknown, block: bigint): unknown => {
  if (typeof value === "string" && tags.has(value)) return quantity(block)
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      name,
      name === "fromBlock" || name === "toBlock" ? olden(member, block) : member
    ])
  )
}

/** The same calls, on the state of that block. */
export const question = (body: Call | ReadonlyArray<Call>, block: bigint): unknown => {
  const one = (call: Call) => ({ ...call, params: (call.params ?? []).map((value) => olden(value, block)) })
  return Array.isArray(body) ? body.map(one) : one(body as Call)
}

const blockOf = (result: unknown): bigint | null =>
  typeof result === "object" &&
  result !== null &&
  "blockNumber" in result &&
  typeof result.blockNumber === "string"
    ? BigInt(result.blockNumber)
    : null

const seen = (method: string | undefined, message: Message, block: bigint): Message => {
  if (method === "eth_blockNumber") return { ...message, result: quantity(block) }
  const later = (blockOf(message.result) ?? 0n) > block
  const hidden = method === "eth_getTransactionReceipt" || method === "eth_getTransactionByHash"
  return hidden && later ? { ...message, result: null } : message
}

/** The answers without later blocks. */
export const answer = (
  calls: ReadonlyArray<Call>,
  answers: Message | ReadonlyArray<Message>,
  block: bigint
): string => {
  const one = (message: Message) => seen(calls.find(({ id }) => id === message.id)?.method, message, block)
  return JSON.stringify(Array.isArray(answers) ? answers.map(one) : one(answers as Message))
}
