import { Server } from "node:net"

/**
 * Loaded before a program that listens on every interface without an option against it: keeps its listeners on this
 * machine.
 */
const listen = Server.prototype.listen
Server.prototype.listen = function (...args) {
  const [first, ...rest] = args
  if (typeof first === "object" && first !== null && "port" in first)
    return listen.call(this, { ...first, host: "127.0.0.1" }, ...rest)
  if (typeof first === "number" || /^\d+$/.test(String(first)))
    return listen.call(
      this,
      { port: Number(first), host: "127.0.0.1" },
      ...rest.filter((arg) => typeof arg === "function")
    )
  return listen.apply(this, args)
}
