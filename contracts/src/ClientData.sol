// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @notice Whether two members of a `clientDataJSON` are members of its object itself, not of one inside it.
/// @dev The caller has compared the bytes at the two indexes with `"type":"webauthn.get"` and `"challenge":"..."`.
/// A nested object may hold the same bytes, under an outer type that says webauthn.create. The service follows the same
/// rule (src/domain/signature/ClientData.ts).
library ClientData {
    /// @notice Whether the strings that begin at both indexes are names of members of the outermost JSON object.
    /// @dev The function ignores the bytes after the second string. The order of the specification is recognised by two
    /// bytes; in any other order everything in front of the second member is read.
    /// @param json The serialised client data.
    /// @param typeIndex Byte at which `"type":"webauthn.get"` was found.
    /// @param challengeIndex Byte at which `"challenge":"..."` was found.
    /// @return Whether both are. An index after the last byte gives false.
    function areMembers(string calldata json, uint256 typeIndex, uint256 challengeIndex) internal pure returns (bool) {
        if (typeIndex >= bytes(json).length || challengeIndex >= bytes(json).length) return false;
        // `{"type":"webauthn.get","challenge":"` is how every serialisation of the WebAuthn specification begins. The 21
        // bytes of the type are known: there remain the first byte and the comma.
        if (typeIndex == 1 && challengeIndex == 23) {
            bytes32 begin;
            assembly ("memory-safe") {
                begin := calldataload(json.offset)
            }
            return begin[0] == "{" && begin[22] == ",";
        }
        return _scan(json, typeIndex, challengeIndex);
    }

    /// @dev Reads up to the higher index: skips whole strings and counts brackets. A string that begins at one of the two
    /// indexes while one bracket is open, a curly one, is a member of the object itself.
    function _scan(string calldata json, uint256 a, uint256 b) private pure returns (bool) {
        uint256 depth;
        uint256 found;
        uint256 last = a > b ? a : b;
        // No counter can overflow: all of them are below the length of the calldata.
        unchecked {
            for (uint256 index = 0; index <= last; ++index) {
                uint256 char = _byteAt(json, index);
                if (char == 0x22) {
                    // A quote: a string begins. Outside of the object there is none.
                    if (depth == 0) return false;
                    if (depth == 1 && (index == a || index == b)) ++found;
                    index = _endOfString(json, index + 1, last);
                } else if (char & 0xd9 == 0x59) {
                    // Of the characters that share these bits the four brackets count.
                    if (char == 0x7b) {
                        ++depth;
                    } else if (char == 0x5b) {
                        // Nothing in an outermost array is a member.
                        if (depth == 0) return false;
                        ++depth;
                    } else if (char == 0x7d || char == 0x5d) {
                        // The end of the object itself, or there was none.
                        if (depth < 2) return false;
                        --depth;
                    } else if (depth == 0) {
                        return false;
                    }
                } else if (depth == 0 && (0x100002600 >> char) & 1 == 0) {
                    // In front of the object there is white space at most: space, tab, line feed, carriage return.
                    return false;
                }
            }
        }
        return found == 2;
    }

    /// @dev The index of the quote that ends a string whose text begins at `index`; one behind `last` when none does up to
    /// there. A backslash escapes the next character. Reads 32 bytes per step.
    function _endOfString(string calldata json, uint256 index, uint256 last) private pure returns (uint256) {
        unchecked {
            while (index <= last) {
                uint256 word;
                uint256 special;
                assembly ("memory-safe") {
                    word := calldataload(add(json.offset, index))
                    // Zero where the byte is a quote, a backslash.
                    let quotes := xor(word, 0x2222222222222222222222222222222222222222222222222222222222222222)
                    let slashes := xor(word, 0x5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c)
                    // The highest bit of every byte that is not zero; exact, since no sum carries over into the next byte.
                    let low := 0x7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f
                    quotes := or(add(and(quotes, low), low), quotes)
                    slashes := or(add(and(slashes, low), low), slashes)
                    // And from that the highest bit of every byte that is one of the two.
                    special := and(not(and(quotes, slashes)), not(low))
                }
                if (special == 0) {
                    index += 32;
                    continue;
                }
                // The first of them: the number of bytes in front of the highest bit that is set.
                uint256 skip;
                if (special >> 128 == 0) (skip, special) = (16, special << 128);
                if (special >> 192 == 0) (skip, special) = (skip + 8, special << 64);
                if (special >> 224 == 0) (skip, special) = (skip + 4, special << 32);
                if (special >> 240 == 0) (skip, special) = (skip + 2, special << 16);
                if (special >> 248 == 0) ++skip;
                index += skip;
                if (_byteAt(json, index) == 0x22) return index;
                index += 2;
            }
            return last + 1;
        }
    }

    /// @dev The byte at this index; behind the end of the text it is of what follows in the calldata.
    function _byteAt(string calldata json, uint256 index) private pure returns (uint256 char) {
        assembly ("memory-safe") {
            char := byte(0, calldataload(add(json.offset, index)))
        }
    }
}
