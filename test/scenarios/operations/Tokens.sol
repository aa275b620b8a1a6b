// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

/// An ERC-20 whose logs are what its caller says, whatever moves.
contract Liar {
    event Transfer(address indexed from, address indexed to, uint256 value);

    mapping(address => uint256) public balanceOf;

    function move(address to, uint256 logged, uint256 moved) external {
        unchecked {
            balanceOf[msg.sender] -= moved;
            balanceOf[to] += moved;
        }
        if (logged > 0) emit Transfer(msg.sender, to, logged);
    }

    function many(uint256 count) external {
        for (uint256 i = 0; i < count; i++) emit Transfer(address(this), address(this), i);
    }
}

/// Emits the events of ERC-721 and ERC-1155.
contract Collection {
    event Transfer(address indexed from, address indexed to, uint256 indexed id);
    event Approval(address indexed owner, address indexed spender, uint256 indexed id);
    event ApprovalForAll(address indexed owner, address indexed operator, bool approved);
    event TransferSingle(address indexed operator, address indexed from, address indexed to, uint256 id, uint256 value);
    event TransferBatch(
        address indexed operator, address indexed from, address indexed to, uint256[] ids, uint256[] values
    );

    mapping(address => uint256) public balanceOf;

    function mint(address to, uint256 id) external {
        balanceOf[to]++;
        emit Transfer(address(0), to, id);
    }

    function approve(address spender, uint256 id) external {
        emit Approval(msg.sender, spender, id);
    }

    function setApprovalForAll(address operator, bool approved) external {
        emit ApprovalForAll(msg.sender, operator, approved);
    }

    function send(address to, uint256 id, uint256 value) external {
        emit TransferSingle(msg.sender, msg.sender, to, id, value);
    }

    function sendAll(address to, uint256[] calldata ids, uint256[] calldata values) external {
        emit TransferBatch(msg.sender, msg.sender, to, ids, values);
    }
}

/// Gives half of what it gets back, in a separate call.
contract Vault {
    function deposit() external payable {
        (bool sent,) = msg.sender.call{value: msg.value / 2}("");
        require(sent);
    }
}
