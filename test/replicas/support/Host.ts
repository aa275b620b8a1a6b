import { promises as dns } from "node:dns"
import * as Effect from "effect/Effect"
import * as Config from "../../../src/hosts/config/Config.js"
import * as Process from "../../../src/hosts/node/Process.js"
import * as Service from "../../../src/hosts/node/Service.js"
import * as JsonLog from "../../../src/hosts/service/JsonLog.js"

/**
 * The service as a process, like `src/hosts/node/main.ts`, on a machine whose name server returns one private address
 * for every name: replicas reach one node, under one URL, through separate wires.
 */
const address = process.env.CASTELLAN_TEST_ADDRESS ?? "127.0.0.1"
dns.Resolver.prototype.resolve4 = (async () => [address]) as unknown as typeof dns.Resolver.prototype.resolve4
dns.Resolver.prototype.resolve6 = async () => []

Process.run(
  Effect.gen(function* () {
    const config = yield* Effect.fromResult(Config.load(process.env))
    const { url } = yield* Service.start(config)
    yield* Effect.annotateLogs(Effect.logInfo("listening"), { url, profile: config.profile })
    return yield* Effect.never
  }).pipe(Effect.provide(JsonLog.layer))
)
