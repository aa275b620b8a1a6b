import { afterAll, expect } from "vitest"
import * as Guard from "./Guard.js"

/** In every test file: what is logged and answered while it runs tells no private key of the tests. */
const guard = Guard.install(globalThis)

afterAll(() => {
  guard.remove()
  expect(guard.found()).toEqual([])
})
