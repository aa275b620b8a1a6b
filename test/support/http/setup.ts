import { afterAll, expect } from "vitest"
import * as LeftBehind from "../LeftBehind.js"
import * as Conformance from "./Conformance.js"

/** In every test file: the service's requests and answers match its OpenAPI document. */
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
