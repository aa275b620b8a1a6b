import { writeFileSync } from "node:fs"
import { DatabaseSync } from "node:sqlite"
import { threadId } from "node:worker_threads"

/**
 * Loaded before the service: counts its SQLite statements in every thread, and writes the counts to
 * `$CASTELLAN_BENCH_COUNTS-<thread>` ten times a second. The service itself is as shipped.
 */
const file = `${process.env.CASTELLAN_BENCH_COUNTS}-${threadId}`
const counts = { reads: 0, writes: 0, commits: 0 }

const count = (source) => {
  const verb = /^\s*(\w+)/.exec(source)?.[1]?.toLowerCase()
  if (verb === "commit") counts.commits += 1
  else if (verb === "insert" || verb === "update" || verb === "delete" || verb === "replace")
    counts.writes += 1
  else if (verb === "select" || verb === "with") counts.reads += 1
}

const { exec, prepare } = DatabaseSync.prototype
DatabaseSync.prototype.exec = function (source) {
  count(source)
  return exec.call(this, source)
}
DatabaseSync.prototype.prepare = function (source) {
  const statement = prepare.call(this, source)
  for (const method of ["run", "get", "all", "iterate"]) {
    const original = statement[method]
    statement[method] = function (...args) {
      count(source)
      return original.apply(this, args)
    }
  }
  return statement
}

let written = ""
setInterval(() => {
  const text = JSON.stringify(counts)
  if (text !== written) writeFileSync(file, text)
  written = text
}, 100).unref()
