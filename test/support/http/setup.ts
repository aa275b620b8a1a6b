import { appendFileSync } from "node:fs"
import { afterAll, expect } from "vitest"
import * as LeftBehind from "../run/LeftBehind.js"
import * as Conformance from "./Conformance.js"

/** In every test file: what the service is asked and answers is what its OpenAPI document says. */
const conformance = Conformance.install(globalThis)
const remove = LeftBehind.remember(() => {
  conformance.remove()
  conformance.take()
  conformance.counts()
})

afterAll(() => {
  const found = conformance.take()
  const counts = conformance.counts()
  remove()
  const file = process.env.CASTELLAN_TEST_EXCHANGES
  if (file !== undefined) appendFileSync(file, `${JSON.stringify(counts)}\n`)
  expect(found).toEqual([])
})
