// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// Emits events of every kind of parameter, many per transaction, each derived from its number.
contract Emitter {
    struct Point {
        int128 x;
        string name;
    }

    event Transfer(address indexed from, address indexed to, uint256 value);
    event Noted(uint64 indexed id, string indexed tag, bytes payload, int32[] list, Point point);
    event Shaped(uint16[] indexed list, Point indexed point, string[] indexed words, bytes indexed raw) anonymous;
    event Drawn(uint16[2] indexed pair, Point[] indexed points, bool even, bytes4 mark);

    string[3] private tags = ["red", "green", "a tag that is longer than thirty-two bytes are"];

    function emitMany(uint256 first, uint256 count) external {
        for (uint256 id = first; id < first + count; id++) {
            uint256 kind = id % 5;
            if (kind < 2) emit Transfer(address(uint160(id % 7 + 1)), address(uint160(id % 11 + 1)), id);
            else if (kind == 2) noted(id);
            else if (kind == 3) shaped(id);
            else drawn(id);
        }
    }

    function noted(uint256 id) private {
        int32[] memory list = new int32[](id % 3);
        for (uint256 i = 0; i < list.length; i++) list[i] = -int32(int256(id % 100));
        bytes memory payload = abi.encodePacked(uint16(id % 50));
        emit Noted(uint64(id), tags[id % 3], payload, list, Point(-int128(int256(id % 4)), tags[id % 3]));
    }

    function shaped(uint256 id) private {
        uint16[] memory list = new uint16[](id % 4);
        for (uint256 i = 0; i < list.length; i++) list[i] = uint16(i + id % 2);
        string[] memory words = new string[](id % 3);
        for (uint256 i = 0; i < words.length; i++) words[i] = tags[(id + i) % 3];
        emit Shaped(list, Point(-int128(int256(id % 4)), tags[id % 3]), words, abi.encodePacked(uint8(id % 20)));
    }

    function drawn(uint256 id) private {
        Point[] memory points = new Point[](id % 2);
        for (uint256 i = 0; i < points.length; i++) points[i] = Point(int128(int256(id % 3)), tags[i]);
        emit Drawn([uint16(id % 6), 7], points, id % 2 == 0, bytes4(uint32(id % 10)));
    }
}

/// Shares its event's topic with ERC-20 tokens, not its layout.
contract Nft {
    event Transfer(address indexed from, address indexed to, uint256 indexed tokenId);

    function emitMany(uint256 first, uint256 count) external {
        for (uint256 id = first; id < first + count; id++)
            emit Transfer(address(uint160(id % 7 + 1)), address(uint160(id % 11 + 1)), id);
    }
}
