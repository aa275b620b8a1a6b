import { appendFileSync } from "node:fs"
import { afterAll, expect } from "vitest"
import * as Conformance from "./Conformance.js"

/** In every test file: what the service is asked and answers is what its OpenAPI document says. */
const conformance = Conformance.install(globalThis)

afterAll(() => {
  conformance.remove()
  const counts = conformance.counts()
  const file = process.env.CASTELLAN_TEST_EXCHANGES
  if (file !== undefined) appendFileSync(file, `${JSON.stringify(counts)}\n`)
  expect(conformance.take()).toEqual([])
})
