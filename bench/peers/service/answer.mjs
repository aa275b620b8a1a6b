/** Answers the bench's messages with these functions. */
export const answer = (methods) => {
  process.on("message", async ({ id, method, params }) => {
    try {
      process.send({ id, result: await methods[method](params) })
    } catch (cause) {
      process.send({ id, error: String(cause?.stack ?? cause).slice(0, 4_000) })
    }
  })
}

/** CPU time of this process, in ms. */
export const cpuMillis = () => {
  const { system, user } = process.cpuUsage()
  return (system + user) / 1_000
}
