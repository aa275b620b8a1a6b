// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {UpgradeableBeacon} from "@openzeppelin/contracts/proxy/beacon/UpgradeableBeacon.sol";
