/**
 * Keccak-f[1600] (FIPS 202) on 32-bit halves: the 25 lanes x + 5y of the state, each its low word, then its high one.
 *
 * Every word of a round has a name instead of a place in an array, since that is several times faster than loops over
 * typed arrays; hence the length. Reading the state needs no check: all indices are literals below 50.
 */

/** Low and high words of the constants of the 24 rounds. */
const roundConstants = Int32Array.of(
  0x00000001,
  0x00000000,
  0x00008082,
  0x00000000,
  0x0000808a,
  0x80000000,
  0x80008000,
  0x80000000,
  0x0000808b,
  0x00000000,
  0x80000001,
  0x00000000,
  0x80008081,
  0x80000000,
  0x00008009,
  0x80000000,
  0x0000008a,
  0x00000000,
  0x00000088,
  0x00000000,
  0x80008009,
  0x00000000,
  0x8000000a,
  0x00000000,
  0x8000808b,
  0x00000000,
  0x0000008b,
  0x80000000,
  0x00008089,
  0x80000000,
  0x00008003,
  0x80000000,
  0x00008002,
  0x80000000,
  0x00000080,
  0x80000000,
  0x0000800a,
  0x00000000,
  0x8000000a,
  0x80000000,
  0x80008081,
  0x80000000,
  0x00008080,
  0x80000000,
  0x80000001,
  0x00000000,
  0x80008008,
  0x80000000
)

export const permute = (s: Int32Array): void => {
  for (let round = 0; round < 48; round += 2) {
    // Theta: the parity of each column, and what it changes.
    const c0 =
      (s[0] as number) ^ (s[10] as number) ^ (s[20] as number) ^ (s[30] as number) ^ (s[40] as number)
    const c1 =
      (s[1] as number) ^ (s[11] as number) ^ (s[21] as number) ^ (s[31] as number) ^ (s[41] as number)
    const c2 =
      (s[2] as number) ^ (s[12] as number) ^ (s[22] as number) ^ (s[32] as number) ^ (s[42] as number)
    const c3 =
      (s[3] as number) ^ (s[13] as number) ^ (s[23] as number) ^ (s[33] as number) ^ (s[43] as number)
    const c4 =
      (s[4] as number) ^ (s[14] as number) ^ (s[24] as number) ^ (s[34] as number) ^ (s[44] as number)
    const c5 =
      (s[5] as number) ^ (s[15] as number) ^ (s[25] as number) ^ (s[35] as number) ^ (s[45] as number)
    const c6 =
      (s[6] as number) ^ (s[16] as number) ^ (s[26] as number) ^ (s[36] as number) ^ (s[46] as number)
    const c7 =
      (s[7] as number) ^ (s[17] as number) ^ (s[27] as number) ^ (s[37] as number) ^ (s[47] as number)
    const c8 =
      (s[8] as number) ^ (s[18] as number) ^ (s[28] as number) ^ (s[38] as number) ^ (s[48] as number)
    const c9 =
      (s[9] as number) ^ (s[19] as number) ^ (s[29] as number) ^ (s[39] as number) ^ (s[49] as number)
    const d0 = c8 ^ ((c2 << 1) | (c3 >>> 31))
    const d1 = c9 ^ ((c3 << 1) | (c2 >>> 31))
    const d2 = c0 ^ ((c4 << 1) | (c5 >>> 31))
    const d3 = c1 ^ ((c5 << 1) | (c4 >>> 31))
    const d4 = c2 ^ ((c6 << 1) | (c7 >>> 31))
    const d5 = c3 ^ ((c7 << 1) | (c6 >>> 31))
    const d6 = c4 ^ ((c8 << 1) | (c9 >>> 31))
    const d7 = c5 ^ ((c9 << 1) | (c8 >>> 31))
    const d8 = c6 ^ ((c0 << 1) | (c1 >>> 31))
    const d9 = c7 ^ ((c1 << 1) | (c0 >>> 31))
    // Theta applied, at the places that pi moves the lanes to.
    const p0 = (s[0] as number) ^ d0
    const p1 = (s[1] as number) ^ d1
    const p2 = (s[12] as number) ^ d2
    const p3 = (s[13] as number) ^ d3
    const p4 = (s[24] as number) ^ d4
    const p5 = (s[25] as number) ^ d5
    const p6 = (s[36] as number) ^ d6
    const p7 = (s[37] as number) ^ d7
    const p8 = (s[48] as number) ^ d8
    const p9 = (s[49] as number) ^ d9
    const p10 = (s[6] as number) ^ d6
    const p11 = (s[7] as number) ^ d7
    const p12 = (s[18] as number) ^ d8
    const p13 = (s[19] as number) ^ d9
    const p14 = (s[20] as number) ^ d0
    const p15 = (s[21] as number) ^ d1
    const p16 = (s[32] as number) ^ d2
    const p17 = (s[33] as number) ^ d3
    const p18 = (s[44] as number) ^ d4
    const p19 = (s[45] as number) ^ d5
    const p20 = (s[2] as number) ^ d2
    const p21 = (s[3] as number) ^ d3
    const p22 = (s[14] as number) ^ d4
    const p23 = (s[15] as number) ^ d5
    const p24 = (s[26] as number) ^ d6
    const p25 = (s[27] as number) ^ d7
    const p26 = (s[38] as number) ^ d8
    const p27 = (s[39] as number) ^ d9
    const p28 = (s[40] as number) ^ d0
    const p29 = (s[41] as number) ^ d1
    const p30 = (s[8] as number) ^ d8
    const p31 = (s[9] as number) ^ d9
    const p32 = (s[10] as number) ^ d0
    const p33 = (s[11] as number) ^ d1
    const p34 = (s[22] as number) ^ d2
    const p35 = (s[23] as number) ^ d3
    const p36 = (s[34] as number) ^ d4
    const p37 = (s[35] as number) ^ d5
    const p38 = (s[46] as number) ^ d6
    const p39 = (s[47] as number) ^ d7
    const p40 = (s[4] as number) ^ d4
    const p41 = (s[5] as number) ^ d5
    const p42 = (s[16] as number) ^ d6
    const p43 = (s[17] as number) ^ d7
    const p44 = (s[28] as number) ^ d8
    const p45 = (s[29] as number) ^ d9
    const p46 = (s[30] as number) ^ d0
    const p47 = (s[31] as number) ^ d1
    const p48 = (s[42] as number) ^ d2
    const p49 = (s[43] as number) ^ d3
    // Rho: each lane rotated.
    const b0 = p0
    const b1 = p1
    const b2 = (p3 << 12) | (p2 >>> 20)
    const b3 = (p2 << 12) | (p3 >>> 20)
    const b4 = (p5 << 11) | (p4 >>> 21)
    const b5 = (p4 << 11) | (p5 >>> 21)
    const b6 = (p6 << 21) | (p7 >>> 11)
    const b7 = (p7 << 21) | (p6 >>> 11)
    const b8 = (p8 << 14) | (p9 >>> 18)
    const b9 = (p9 << 14) | (p8 >>> 18)
    const b10 = (p10 << 28) | (p11 >>> 4)
    const b11 = (p11 << 28) | (p10 >>> 4)
    const b12 = (p12 << 20) | (p13 >>> 12)
    const b13 = (p13 << 20) | (p12 >>> 12)
    const b14 = (p14 << 3) | (p15 >>> 29)
    const b15 = (p15 << 3) | (p14 >>> 29)
    const b16 = (p17 << 13) | (p16 >>> 19)
    const b17 = (p16 << 13) | (p17 >>> 19)
    const b18 = (p19 << 29) | (p18 >>> 3)
    const b19 = (p18 << 29) | (p19 >>> 3)
    const b20 = (p20 << 1) | (p21 >>> 31)
    const b21 = (p21 << 1) | (p20 >>> 31)
    const b22 = (p22 << 6) | (p23 >>> 26)
    const b23 = (p23 << 6) | (p22 >>> 26)
    const b24 = (p24 << 25) | (p25 >>> 7)
    const b25 = (p25 << 25) | (p24 >>> 7)
    const b26 = (p26 << 8) | (p27 >>> 24)
    const b27 = (p27 << 8) | (p26 >>> 24)
    const b28 = (p28 << 18) | (p29 >>> 14)
    const b29 = (p29 << 18) | (p28 >>> 14)
    const b30 = (p30 << 27) | (p31 >>> 5)
    const b31 = (p31 << 27) | (p30 >>> 5)
    const b32 = (p33 << 4) | (p32 >>> 28)
    const b33 = (p32 << 4) | (p33 >>> 28)
    const b34 = (p34 << 10) | (p35 >>> 22)
    const b35 = (p35 << 10) | (p34 >>> 22)
    const b36 = (p36 << 15) | (p37 >>> 17)
    const b37 = (p37 << 15) | (p36 >>> 17)
    const b38 = (p39 << 24) | (p38 >>> 8)
    const b39 = (p38 << 24) | (p39 >>> 8)
    const b40 = (p41 << 30) | (p40 >>> 2)
    const b41 = (p40 << 30) | (p41 >>> 2)
    const b42 = (p43 << 23) | (p42 >>> 9)
    const b43 = (p42 << 23) | (p43 >>> 9)
    const b44 = (p45 << 7) | (p44 >>> 25)
    const b45 = (p44 << 7) | (p45 >>> 25)
    const b46 = (p47 << 9) | (p46 >>> 23)
    const b47 = (p46 << 9) | (p47 >>> 23)
    const b48 = (p48 << 2) | (p49 >>> 30)
    const b49 = (p49 << 2) | (p48 >>> 30)
    // Chi and iota.
    s[0] = b0 ^ (~b2 & b4) ^ (roundConstants[round] as number)
    s[1] = b1 ^ (~b3 & b5) ^ (roundConstants[round + 1] as number)
    s[2] = b2 ^ (~b4 & b6)
    s[3] = b3 ^ (~b5 & b7)
    s[4] = b4 ^ (~b6 & b8)
    s[5] = b5 ^ (~b7 & b9)
    s[6] = b6 ^ (~b8 & b0)
    s[7] = b7 ^ (~b9 & b1)
    s[8] = b8 ^ (~b0 & b2)
    s[9] = b9 ^ (~b1 & b3)
    s[10] = b10 ^ (~b12 & b14)
    s[11] = b11 ^ (~b13 & b15)
    s[12] = b12 ^ (~b14 & b16)
    s[13] = b13 ^ (~b15 & b17)
    s[14] = b14 ^ (~b16 & b18)
    s[15] = b15 ^ (~b17 & b19)
    s[16] = b16 ^ (~b18 & b10)
    s[17] = b17 ^ (~b19 & b11)
    s[18] = b18 ^ (~b10 & b12)
    s[19] = b19 ^ (~b11 & b13)
    s[20] = b20 ^ (~b22 & b24)
    s[21] = b21 ^ (~b23 & b25)
    s[22] = b22 ^ (~b24 & b26)
    s[23] = b23 ^ (~b25 & b27)
    s[24] = b24 ^ (~b26 & b28)
    s[25] = b25 ^ (~b27 & b29)
    s[26] = b26 ^ (~b28 & b20)
    s[27] = b27 ^ (~b29 & b21)
    s[28] = b28 ^ (~b20 & b22)
    s[29] = b29 ^ (~b21 & b23)
    s[30] = b30 ^ (~b32 & b34)
    s[31] = b31 ^ (~b33 & b35)
    s[32] = b32 ^ (~b34 & b36)
    s[33] = b33 ^ (~b35 & b37)
    s[34] = b34 ^ (~b36 & b38)
    s[35] = b35 ^ (~b37 & b39)
    s[36] = b36 ^ (~b38 & b30)
    s[37] = b37 ^ (~b39 & b31)
    s[38] = b38 ^ (~b30 & b32)
    s[39] = b39 ^ (~b31 & b33)
    s[40] = b40 ^ (~b42 & b44)
    s[41] = b41 ^ (~b43 & b45)
    s[42] = b42 ^ (~b44 & b46)
    s[43] = b43 ^ (~b45 & b47)
    s[44] = b44 ^ (~b46 & b48)
    s[45] = b45 ^ (~b47 & b49)
    s[46] = b46 ^ (~b48 & b40)
    s[47] = b47 ^ (~b49 & b41)
    s[48] = b48 ^ (~b40 & b42)
    s[49] = b49 ^ (~b41 & b43)
  }
}
