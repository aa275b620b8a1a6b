import { afterAll, beforeAll } from "vitest"

/** Starts a stack, a node or a service before the tests of a file or group, and stops it after them. Its members exist once it runs. */
export const use = <A extends { readonly stop: () => unknown }>(
  begin: () => Promise<A>,
  timeoutMillis?: number
): A => {
  let begun: A | undefined
  beforeAll(async () => {
    begun = await begin()
  }, timeoutMillis)
  afterAll(() => begun?.stop())
  const get = (_: A, member: PropertyKey) => {
    const own: unknown = begun === undefined ? undefined : Reflect.get(begun, member)
    return typeof own === "function" ? own.bind(begun) : own
  }
  return new Proxy({} as A, {
    get,
    // For copies of it.
    ownKeys: () => Reflect.ownKeys(begun ?? {}),
    getOwnPropertyDescriptor: (target, member) => ({
      value: get(target, member),
      enumerable: true,
      configurable: true
    })
  })
}
