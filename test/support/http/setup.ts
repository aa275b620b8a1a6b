import { afterAll, expect } from "vitest"
import * as LeftBehind from "../LeftBehind.js"
import * as Conformance from "./Conformance.js"

/** Runs in every test file: the service's exchanges must match its OpenAPI document. */
const conformance = Conformance.install(globalThis)
const remove = LeftBehind.remember(() => {
  conformance.remove()
  conformance.take()
})

afterAll(() => {
  const found = conformance.take()
  remove()
  expect(found).toEqual([])
})
