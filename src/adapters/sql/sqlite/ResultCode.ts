/**
 * Names of SQLite's result codes (sqlite.org/rescode.html). Errors of `node:sqlite` carry the extended code as the number
 * `errcode`, whose lowest eight bits are the primary code.
 */

/** By number; errors never have 0. */
const primary = (
  "ERROR ERROR INTERNAL PERM ABORT BUSY LOCKED NOMEM READONLY INTERRUPT IOERR CORRUPT NOTFOUND FULL CANTOPEN PROTOCOL EMPTY " +
  "SCHEMA TOOBIG CONSTRAINT MISMATCH MISUSE NOLFS AUTH FORMAT RANGE NOTADB"
).split(" ")

/** Extended codes of a primary code, from 1 on. */
const kinds: Readonly<Record<string, string>> = {
  BUSY: "RECOVERY SNAPSHOT TIMEOUT",
  READONLY: "RECOVERY CANTLOCK ROLLBACK DBMOVED CANTINIT DIRECTORY",
  IOERR:
    "READ SHORT_READ WRITE FSYNC DIR_FSYNC TRUNCATE FSTAT UNLOCK RDLOCK DELETE BLOCKED NOMEM ACCESS CHECKRESERVEDLOCK LOCK " +
    "CLOSE DIR_CLOSE SHMOPEN SHMSIZE SHMLOCK SHMMAP SEEK DELETE_NOENT MMAP GETTEMPPATH CONVPATH VNODE AUTH BEGIN_ATOMIC " +
    "COMMIT_ATOMIC ROLLBACK_ATOMIC DATA CORRUPTFS",
  CORRUPT: "VTAB SEQUENCE INDEX",
  CANTOPEN: "NOTEMPDIR ISDIR FULLPATH CONVPATH DIRTYWAL SYMLINK",
  CONSTRAINT:
    "CHECK COMMITHOOK FOREIGNKEY FUNCTION NOTNULL PRIMARYKEY TRIGGER UNIQUE VTAB ROWID PINNED DATATYPE"
}

/** For example `SQLITE_CONSTRAINT_UNIQUE`; an unknown extended code gets its primary code's name. */
const nameOf = (extended: number): string => {
  const name = primary[extended & 0xff] ?? "ERROR"
  const kind = kinds[name]?.split(" ")[(extended >> 8) - 1]
  return kind === undefined ? `SQLITE_${name}` : `SQLITE_${name}_${kind}`
}

/** A refusal by the database. `code` is the code's name, as in other drivers. */
export class Refused extends Error {
  override readonly name = "SqliteRefused"
  readonly code: string
  readonly isBusy: boolean

  constructor(message: string, extended: number) {
    super(message)
    this.code = nameOf(extended)
    this.isBusy = primary[extended & 0xff] === "BUSY"
  }
}

/** Names an error of `node:sqlite`; returns any other error unchanged. */
export const refusal = (cause: unknown): unknown =>
  cause instanceof Error && "errcode" in cause && typeof cause.errcode === "number"
    ? new Refused(cause.message, cause.errcode)
    : cause
