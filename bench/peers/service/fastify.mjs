import { createHmac } from "node:crypto"
import { createWriteStream } from "node:fs"
import rateLimit from "@fastify/rate-limit"
import Fastify from "fastify"

/**
 * One endpoint of a careful fastify backend: keys looked up by hash, limits per account, schemas of request and response,
 * and a log line per request on disk. Configured by the environment.
 */

const { BODY_LIMIT, KEYS, LOG_FILE, MAX, PEPPER } = process.env
const known = new Map(JSON.parse(KEYS).map(({ account, hash }) => [hash, account]))
const hashOf = (key) => createHmac("sha256", PEPPER).update(key).digest("hex")

const app = Fastify({ bodyLimit: Number(BODY_LIMIT), logger: { stream: createWriteStream(LOG_FILE) } })

app.addHook("onRequest", async (request, reply) => {
  const account = known.get(hashOf(request.headers["x-api-key"] ?? ""))
  if (account === undefined) return reply.code(401).send({ error: "unauthorized", code: "unauthorized" })
  request.account = account
})
await app.register(rateLimit, {
  max: Number(MAX),
  timeWindow: 60_000,
  keyGenerator: ({ account }) => account
})

const schema = {
  body: { type: "object", properties: { chainId: { type: "integer" } }, additionalProperties: false },
  response: { 200: { type: "object", properties: { address: { type: "string" } } } }
}
app.post("/getbundleraddress", { schema }, async () => ({
  address: "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
}))

await app.listen({ host: "127.0.0.1", port: 0 })
process.send({ port: app.server.address().port })
