import { afterAll, expect } from "vitest"
import * as LeftBehind from "../LeftBehind.js"
import * as Guard from "./Guard.js"

/** Runs in every test file: logs and responses must not contain the tests' private keys. */
const guard = Guard.install(globalThis)
const remove = LeftBehind.remember(guard.remove)

afterAll(() => {
  remove()
  expect(guard.found()).toEqual([])
})
