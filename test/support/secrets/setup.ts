import { afterAll, expect } from "vitest"
import * as LeftBehind from "../LeftBehind.js"
import * as Guard from "./Guard.js"

/** In every test file: what is logged and answered while it runs tells no private key of the tests. */
const guard = Guard.install(globalThis)
const remove = LeftBehind.remember(guard.remove)

afterAll(() => {
  remove()
  expect(guard.found()).toEqual([])
})
