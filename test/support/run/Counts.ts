/** What was held against the OpenAPI document, of the lines that the test files wrote. */
export interface Exchanges {
  readonly requests: number
  readonly answers: number
}

export const exchanges = (text: string): Exchanges => {
  const lines: ReadonlyArray<Exchanges> = text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line))
  return {
    requests: lines.reduce((sum, { requests }) => sum + requests, 0),
    answers: lines.reduce((sum, { answers }) => sum + answers, 0)
  }
}

/** What `npm run test:solidity` came to: counts, and a line for each test that failed and each mutant that was missed. */
export interface Solidity {
  readonly passed: number
  readonly failures: ReadonlyArray<string>
}

/** Nothing written is one failure. */
export const solidity = (text: string): Solidity => {
  try {
    return JSON.parse(text)
  } catch {
    return { passed: 0, failures: ["the tests in Solidity did not come to their end"] }
  }
}
