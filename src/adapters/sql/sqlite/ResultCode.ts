/**
 * Result codes of SQLite by their names (sqlite.org/rescode.html). Errors of `node:sqlite` carry the extended code as the
 * number `errcode`, whose lowest eight bits are the code that it is a kind of.
 */

/** By number; 0 is none of an error. */
const primary = (
  "ERROR ERROR INTERNAL PERM ABORT BUSY LOCKED NOMEM READONLY INTERRUPT IOERR CORRUPT NOTFOUND FULL CANTOPEN PROTOCOL EMPTY " +
  "SCHEMA TOOBIG CONSTRAINT MISMATCH MISUSE NOLFS AUTH FORMAT RANGE NOTADB"
).split(" ")

/** The kinds of a code, from 1 on. */
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

/** Such as `SQLITE_CONSTRAINT_UNIQUE`; a kind that is not known here has the name of its code. */
const nameOf = (extended: number): string => {
  const name = primary[extended & 0xff] ?? "ERROR"
  const kind = kinds[name]?.split(" ")[(extended >> 8) - 1]
  return kind === undefined ? `SQLITE_${name}` : `SQLITE_${name}_${kind}`
}

/** What the database refuses. `code` is the name of its code, as other drivers tell it. */
export class Refused extends Error {
  override readonly name = "SqliteRefused"
  readonly code: string
  /** Another connection has what the statement needs: it may succeed later. */
  readonly isBusy: boolean

  constructor(message: string, extended: number) {
    super(message)
    this.code = nameOf(extended)
    this.isBusy = primary[extended & 0xff] === "BUSY"
  }
}

/** An error of `node:sqlite` by its code; any other as it is. */
export const refusal = (cause: unknown): unknown =>
  cause instanceof Error && "errcode" in cause && typeof cause.errcode === "number"
    ? new Refused(cause.message, cause.errcode)
    : cause
