import type { DevInfo } from "../../src/hosts/cli/dev/DevStack.js"

export interface Log {
  readonly address: string
  readonly eventName: string | null
  readonly args: Readonly<Record<string, unknown>>
}

export interface TransactionResult<Element> {
  readonly status: number
  readonly txHash: string
  readonly txHashes: ReadonlyArray<string>
  readonly gasUsed: number
  readonly returnData: ReadonlyArray<Readonly<Record<string, Element>>>
  readonly logs: ReadonlyArray<Log>
}

export interface Created {
  readonly salt: string
  readonly wallet: string
  readonly error?: string
}

export interface Executed {
  readonly userOpHash: string | null
  readonly success: boolean
  readonly error: string | null
  readonly txHash: string | null
}

export interface Predicted {
  readonly salt: string
  readonly wallet: string
  readonly error: string | null
}

export interface Receipts {
  readonly requestStatus: number
  readonly receipts: ReadonlyArray<{
    readonly status: number
    readonly txHash: string
    readonly logs: ReadonlyArray<Log>
  }>
}

/** Fields of the responses that the demo reads, by path. */
interface Answers {
  readonly "/predict": ReadonlyArray<Predicted>
  readonly "/create": TransactionResult<Created>
  readonly "/execute": TransactionResult<Executed>
  readonly "/receipt": Receipts
}

/** Calls the service over HTTP; rejects with the response's text unless the status is 200. */
export const make =
  (info: DevInfo) =>
  async <Path extends keyof Answers>(path: Path, body: unknown): Promise<Answers[Path]> => {
    const answer = await fetch(`${info.baseUrl}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-api-key": info.apiKeys.enterprise },
      body: JSON.stringify(body)
    })
    const text = await answer.text()
    if (answer.status !== 200) throw new Error(`${path} answered ${answer.status}: ${text}`)
    return JSON.parse(text)
  }

export type Client = ReturnType<typeof make>
