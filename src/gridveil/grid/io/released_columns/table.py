"""Which columns of each format a release keeps, and what happens to the others and why."""

from __future__ import annotations

from gridveil.grid.io.released_columns import cgmes, xiidm_and_psse
from gridveil.grid.io.released_columns.reasons import (
    AT_SNAPSHOT,
    CHARACTERISTICS,
    CIRCUITS,
    COPIES,
    COSTS,
    CURVES,
    DISPATCH,
    ENDS,
    EVERY,
    EXTENDABLE,
    FACTOR,
    FREED,
    LOADS,
    MADE,
    NAMES,
    NOISE,
    OF_TYPE,
    RATED,
    RATED_A,
    REACH,
    RESULTS,
    SCALING,
    SIZE,
    STATE,
    TABLES,
    TEXT,
    TOTALS,
    TYPES,
    Rule,
)

_OPTIMISED = (
    "p_nom_mod p_nom_extendable p_nom_min p_nom_max marginal_cost marginal_cost_quadratic "
    "capital_cost overnight_cost discount_rate fom_cost active build_year lifetime length "
    "terrain_factor ramp_limit_up ramp_limit_down"
)
_OF_LENGTH = "length num_parallel terrain_factor capital_cost overnight_cost fom_cost"
_OTHER_SIZES = "s_nom_mod s_nom_min s_nom_max s_nom_set"

KEPT: dict[str, dict[str, str]] = {
    "matpower": {
        "bus": "BUS_I PD QD GS BS AREA BASE_KV ZONE VMAX VMIN",
        "gen": "GEN_BUS QMAX QMIN VG MBASE GEN_STATUS PMAX PMIN PC1 PC2 QC1MIN QC1MAX QC2MIN "
        "QC2MAX RAMP_AGC RAMP_10 RAMP_30 RAMP_Q APF",
        "branch": "F_BUS T_BUS BR_R BR_X BR_B RATE_A RATE_B RATE_C TAP SHIFT BR_STATUS ANGMIN "
        "ANGMAX",
        "gencost": "MODEL STARTUP SHUTDOWN NCOST COST reactive",
        "mpc": "baseMVA version",
    },
    "pandapower": {
        "bus": "name vn_kv type zone in_service geo min_vm_pu max_vm_pu",
        "load": "name bus p_mw q_mvar const_z_p_percent const_i_p_percent const_z_q_percent "
        "const_i_q_percent sn_mva scaling in_service type controllable min_p_mw max_p_mw "
        "min_q_mvar max_q_mvar",
        "sgen": "name bus p_mw q_mvar sn_mva scaling in_service type controllable current_source "
        "min_p_mw max_p_mw min_q_mvar max_q_mvar",
        "gen": "name bus p_mw vm_pu sn_mva scaling slack slack_weight in_service type controllable "
        "min_p_mw max_p_mw min_q_mvar max_q_mvar min_vm_pu max_vm_pu vn_kv",
        "ext_grid": "name bus vm_pu va_degree slack_weight in_service controllable min_p_mw "
        "max_p_mw min_q_mvar max_q_mvar s_sc_max_mva s_sc_min_mva rx_max rx_min",
        "shunt": "name bus p_mw q_mvar vn_kv step max_step in_service",
        "line": "name from_bus to_bus length_km r_ohm_per_km x_ohm_per_km c_nf_per_km g_us_per_km "
        "r0_ohm_per_km x0_ohm_per_km c0_nf_per_km g0_us_per_km max_i_ka df parallel type "
        "in_service geo max_loading_percent endtemp_degree alpha",
        "trafo": "name hv_bus lv_bus sn_mva vn_hv_kv vn_lv_kv vk_percent vkr_percent pfe_kw "
        "i0_percent shift_degree tap_side tap_neutral tap_min tap_max tap_step_percent "
        "tap_step_degree tap_pos tap_changer_type tap2_side tap2_neutral tap2_min tap2_max "
        "tap2_step_percent tap2_step_degree tap2_pos tap2_changer_type parallel df in_service "
        "max_loading_percent leakage_resistance_ratio_hv leakage_reactance_ratio_hv vector_group "
        "oltc vk0_percent vkr0_percent mag0_percent mag0_rx si0_hv_partial",
        "impedance": "name from_bus to_bus in_service sn_mva rft_pu xft_pu rtf_pu xtf_pu gf_pu "
        "bf_pu gt_pu bt_pu",
        "trafo3w": "name hv_bus mv_bus lv_bus sn_hv_mva sn_mv_mva sn_lv_mva vn_hv_kv vn_mv_kv "
        "vn_lv_kv vk_hv_percent vk_mv_percent vk_lv_percent vkr_hv_percent vkr_mv_percent "
        "vkr_lv_percent pfe_kw i0_percent shift_mv_degree shift_lv_degree tap_side tap_neutral "
        "tap_min tap_max tap_step_percent tap_step_degree tap_pos tap_at_star_point "
        "tap_changer_type in_service max_loading_percent",
        "dcline": "name from_bus to_bus p_mw loss_percent loss_mw vm_from_pu vm_to_pu max_p_mw "
        "min_q_from_mvar min_q_to_mvar max_q_from_mvar max_q_to_mvar in_service",
        "storage": "name bus p_mw q_mvar sn_mva soc_percent min_e_mwh max_e_mwh scaling in_service "
        "type controllable min_p_mw max_p_mw min_q_mvar max_q_mvar",
        "switch": "name bus element et type closed z_ohm in_ka",
        "poly_cost": "element et cp0_eur cp1_eur_per_mw cp2_eur_per_mw2 cq0_eur cq1_eur_per_mvar "
        "cq2_eur_per_mvar2 redispatch_up_eur_per_mw redispatch_down_eur_per_mw",
        "pwl_cost": "power_type element et points",
        "net": "f_hz sn_mva version format_version",
    },
    "pypsa": {
        "Bus": "name v_nom x y carrier unit location v_mag_pu_set v_mag_pu_min v_mag_pu_max",
        "Line": "name bus0 bus1 x r g b s_nom s_nom_extendable s_max_pu s_nom_mod s_nom_min "
        "s_nom_max s_nom_set length num_parallel terrain_factor v_ang_min v_ang_max active carrier "
        "build_year lifetime capital_cost overnight_cost discount_rate fom_cost",
        "Transformer": "name bus0 bus1 model x r g b s_nom s_nom_extendable s_max_pu s_nom_mod "
        "s_nom_min s_nom_max s_nom_set num_parallel tap_ratio tap_side tap_position phase_shift "
        "phase_shift_min phase_shift_max v_ang_min v_ang_max active build_year lifetime "
        "capital_cost overnight_cost discount_rate fom_cost",
        "Load": "name bus carrier p_set q_set sign active",
        "Generator": "name bus control carrier p_nom p_nom_extendable p_min_pu p_max_pu p_set "
        "p_init q_set sign p_nom_mod p_nom_min p_nom_max p_nom_set e_sum_min e_sum_max "
        "marginal_cost marginal_cost_quadratic active build_year lifetime capital_cost "
        "overnight_cost discount_rate fom_cost efficiency start_up_cost shut_down_cost "
        "stand_by_cost min_up_time "
        "min_down_time up_time_before down_time_before ramp_limit_up ramp_limit_down "
        "ramp_limit_start_up ramp_limit_shut_down weight maintenance_duration maintenance_pu "
        "maintenance_events",
        "ShuntImpedance": "name bus g b sign active",
        "Link": "name bus0 bus1 carrier efficiency p_nom p_min_pu p_max_pu p_set " + _OPTIMISED,
        "StorageUnit": "name bus control carrier p_nom p_min_pu p_max_pu p_set q_set sign "
        "spill_cost marginal_cost_storage state_of_charge_initial state_of_charge_set "
        "cyclic_state_of_charge max_hours efficiency_store efficiency_dispatch standing_loss "
        "inflow " + _OPTIMISED,
        "Store": "name bus carrier e_nom e_nom_mod e_nom_extendable e_nom_min e_nom_max e_min_pu "
        "e_max_pu e_initial e_cyclic p_set q_set e_set sign marginal_cost_storage standing_loss "
        + _OPTIMISED,
        "Carrier": "name co2_emissions color nice_name max_growth max_relative_growth",
        "GlobalConstraint": "name type carrier_attribute sense constant",
        "network": "snapshot",
    },
    **xiidm_and_psse.KEPT,
    "cgmes": cgmes.KEPT,
}

RULES: dict[str, tuple[Rule, ...]] = {
    "matpower": (
        Rule("branch", "RATE_A", "capacity", "released", NOISE),
        Rule("branch", "RATE_B RATE_C", "capacity", "rewritten", RATED_A),
        Rule("bus", "PD", "load", "released", NOISE),
        Rule("bus", "QD", "load", "rewritten", FACTOR),
        Rule("bus", "QD", "reactive_load", "released", NOISE),
        Rule("gen", "PMAX PMIN", "generator_limit", "released", NOISE),
        Rule("gen", "QMAX QMIN", "generator_limit", "rewritten", REACH, some=True),
        Rule("gen", "MBASE", "generator_limit", "dropped", SIZE),
        Rule(
            "gen",
            "PC1 PC2 QC1MIN QC1MAX QC2MIN QC2MAX RAMP_AGC RAMP_10 RAMP_30 RAMP_Q APF",
            "generator_limit",
            "dropped",
            MADE,
        ),
        Rule("gencost", "MODEL NCOST COST", "cost", "released", NOISE),
        Rule("gencost", "STARTUP SHUTDOWN reactive", "cost", "dropped", COSTS),
        Rule("gencost", "MODEL NCOST COST", "generator_limit", "rewritten", CURVES),
        Rule("gencost", "reactive", "generator_limit", "dropped", ENDS, some=True),
        Rule("gen", "PG", EVERY, "rewritten", DISPATCH),
        Rule("gen", "QG", EVERY, "dropped", RESULTS),
        Rule("bus", "VM VA", EVERY, "rewritten", STATE),
        Rule(
            "bus",
            "BUS_TYPE",
            EVERY,
            "rewritten",
            "reference and isolated buses are kept; a bus that runs a unit is PV, any other PQ.",
        ),
        Rule("bus", "LAM_P LAM_Q MU_VMAX MU_VMIN", EVERY, "dropped", RESULTS),
        Rule("gen", "MU_PMAX MU_PMIN MU_QMAX MU_QMIN", EVERY, "dropped", RESULTS),
        Rule("branch", "PF QF PT QT MU_SF MU_ST MU_ANGMIN MU_ANGMAX", EVERY, "dropped", RESULTS),
        Rule("mpc", "name comments", EVERY, "dropped", TEXT),
    ),
    "pandapower": (
        Rule("line trafo impedance", "name", "capacity", "dropped", NAMES),
        Rule("line", "max_i_ka", "capacity", "released", NOISE),
        Rule("line", "df max_loading_percent", "capacity", "rewritten", "1 and 100%."),
        Rule("line", "length_km parallel", "capacity", "rewritten", CIRCUITS),
        Rule(
            "line",
            "r_ohm_per_km x_ohm_per_km c_nf_per_km g_us_per_km r0_ohm_per_km",
            "capacity",
            "rewritten",
            TOTALS,
        ),
        Rule("line", "x0_ohm_per_km c0_nf_per_km g0_us_per_km", "capacity", "rewritten", TOTALS),
        Rule("trafo", "max_loading_percent", "capacity", "released", NOISE),
        Rule(
            "trafo",
            "sn_mva vk_percent vkr_percent i0_percent",
            "capacity",
            "rewritten",
            RATED,
        ),
        Rule(
            "trafo",
            "pfe_kw parallel df",
            "capacity",
            "rewritten",
            "of all units together, as one.",
        ),
        Rule(
            "trafo",
            "vk0_percent vkr0_percent mag0_percent mag0_rx si0_hv_partial",
            "capacity",
            "dropped",
            "given on the private rating.",
        ),
        Rule(
            "trafo3w",
            "sn_hv_mva sn_mv_mva sn_lv_mva vk_hv_percent vk_mv_percent vk_lv_percent "
            "vkr_hv_percent vkr_mv_percent vkr_lv_percent i0_percent",
            "capacity",
            "rewritten",
            RATED,
        ),
        Rule("trafo3w", "name", "capacity", "dropped", NAMES),
        Rule(
            "trafo3w",
            "max_loading_percent",
            "capacity",
            "dropped",
            "ratings of three-winding transformers are not released.",
        ),
        Rule("impedance", "sn_mva", "capacity", "released", NOISE),
        Rule(
            "impedance",
            "rft_pu xft_pu rtf_pu xtf_pu gf_pu bf_pu gt_pu bt_pu",
            "capacity",
            "rewritten",
            RATED,
        ),
        Rule("switch", "in_ka", "capacity", "dropped", COPIES),
        Rule("load", "name", "load generator_limit cost", "dropped", NAMES),
        Rule("load", "p_mw", "load", "released", LOADS),
        Rule("load", "q_mvar", "load", "rewritten", FACTOR),
        Rule("load", "q_mvar", "reactive_load", "released", LOADS),
        Rule("load", "scaling", "load", "rewritten", SCALING),
        Rule("load", "sn_mva", "load", "dropped", "a size of the private load."),
        Rule("load", "sn_mva", "generator_limit", "dropped", SIZE),
        Rule("load", "min_q_mvar max_q_mvar", "load", "dropped", "limits of loads bound them."),
        Rule("gen sgen ext_grid", "name", "generator_limit cost", "dropped", NAMES),
        Rule("gen sgen ext_grid load", "min_p_mw max_p_mw", "generator_limit", "released", NOISE),
        Rule(
            "gen sgen ext_grid load",
            "min_q_mvar max_q_mvar",
            "generator_limit",
            "rewritten",
            REACH,
            some=True,
        ),
        Rule("gen sgen", "scaling", "generator_limit", "rewritten", SCALING),
        Rule("gen sgen", "sn_mva", "generator_limit", "dropped", SIZE),
        Rule("sgen", "q_mvar", "generator_limit", "dropped", MADE),
        Rule("gen ext_grid", "slack_weight", "generator_limit", "dropped", MADE),
        Rule("gen sgen", "controllable", "generator_limit", "rewritten", FREED, some=True),
        Rule("gen sgen", "p_mw", EVERY, "rewritten", DISPATCH, some=True),
        Rule("gen sgen", "p_mw", "generator_limit", "released", NOISE),
        Rule(
            "load",
            "p_mw scaling min_p_mw max_p_mw",
            EVERY,
            "rewritten",
            "as with generators if the load can move; the limits of one that can't are dropped.",
            some=True,
        ),
        Rule(
            "sgen load",
            "q_mvar",
            EVERY,
            "rewritten",
            "0 if the unit can move: " + RESULTS,
            some=True,
        ),
        Rule(
            "gen sgen",
            "scaling",
            EVERY,
            "rewritten",
            "1 if the unit can move: its set point is a result.",
            some=True,
        ),
        Rule("pwl_cost", "points", "cost", "dropped", COSTS),
        Rule("pwl_cost", "points", "generator_limit", "rewritten", CURVES),
        Rule("poly_cost", "cp1_eur_per_mw", "cost", "released", NOISE),
        Rule(
            "poly_cost", "element et", "cost", "rewritten", "a row for every unit, in their order."
        ),
        Rule(
            "poly_cost",
            "cp0_eur cp2_eur_per_mw2 cq0_eur cq1_eur_per_mvar cq2_eur_per_mvar2 "
            "redispatch_up_eur_per_mw redispatch_down_eur_per_mw",
            "cost",
            "dropped",
            COSTS,
        ),
        Rule("pwl_cost", "power_type element et", "cost", "dropped", COSTS),
        Rule("line trafo", "std_type", EVERY, "dropped", TYPES),
        Rule(
            "bus load sgen gen line switch trafo",
            "type vector_group zone",
            EVERY,
            "rewritten",
            "kept if it is a word of pandapower's own or a short label, else dropped: " + TEXT,
            some=True,
        ),
        Rule("gen sgen trafo shunt", CHARACTERISTICS, EVERY, "dropped", TABLES),
        Rule(
            "bus line",
            "geo",
            EVERY,
            "rewritten",
            "its coordinates alone: what else a shape may hold is free text.",
            some=True,
        ),
        Rule("net", "name", EVERY, "dropped", TEXT),
        Rule("net", "std_types", EVERY, "dropped", TYPES),
        Rule("net", "res_* converged OPF_converged", EVERY, "dropped", RESULTS),
    ),
    "pypsa": (
        Rule("Line Transformer", "name", "capacity", "dropped", NAMES),
        Rule("Line", "s_nom", "capacity", "released", NOISE),
        Rule("Line", "s_max_pu", "capacity", "rewritten", "1."),
        Rule("Line", _OF_LENGTH, "capacity", "dropped", CIRCUITS),
        Rule("Transformer", "s_max_pu", "capacity", "released", NOISE),
        Rule("Transformer", "s_nom x r g b", "capacity", "rewritten", RATED),
        Rule("Transformer", "num_parallel", "capacity", "dropped", CIRCUITS),
        Rule("Line Transformer", _OTHER_SIZES, "capacity", "dropped", COPIES),
        Rule("Load", "name", "load", "dropped", NAMES),
        Rule("Load", "p_set", "load", "released", LOADS),
        Rule("Load", "q_set", "load", "rewritten", FACTOR),
        Rule("Load", "q_set", "reactive_load", "released", LOADS),
        Rule("Load", "sign", "load", "rewritten", "-1: it is part of the private value."),
        Rule("Generator", "name", "generator_limit cost", "dropped", NAMES),
        Rule("Generator", "p_nom p_min_pu", "generator_limit", "released", NOISE),
        Rule(
            "Generator",
            "p_max_pu p_set",
            "generator_limit",
            "rewritten",
            "the released p_nom is the limit; a series of availability is kept, at the "
            "snapshots that are read.",
        ),
        Rule(
            "Generator",
            "p_init p_nom_mod p_nom_min p_nom_max p_nom_set e_sum_min e_sum_max",
            "generator_limit",
            "dropped",
            SIZE,
        ),
        Rule("Generator", "weight", "generator_limit", "dropped", SIZE),
        Rule("Generator", "q_set", "generator_limit", "dropped", MADE),
        Rule("Generator", "marginal_cost", "cost", "released", NOISE),
        Rule("Generator", "marginal_cost_quadratic", "cost", "dropped", COSTS),
        Rule(
            "Generator",
            "start_up_cost shut_down_cost stand_by_cost efficiency",
            "cost",
            "dropped",
            COSTS,
        ),
        Rule("Line Transformer", "type", EVERY, "dropped", TYPES),
        Rule("Line Transformer", "x r g b", EVERY, "rewritten", OF_TYPE, some=True),
        Rule("Transformer", "s_nom tap_ratio phase_shift", EVERY, "rewritten", OF_TYPE, some=True),
        Rule("Bus Load Generator Link StorageUnit Store", "type", EVERY, "dropped", TEXT),
        Rule(
            "Bus Line Load Generator Carrier Link StorageUnit Store",
            "carrier unit location nice_name color",
            EVERY,
            "rewritten",
            "kept if it is a short label, else dropped: " + TEXT,
            some=True,
        ),
        Rule("Generator", "committable maintainable", EVERY, "dropped", EXTENDABLE),
        Rule("Bus", "control generator sub_network", EVERY, "dropped", RESULTS),
        Rule(
            "Line Transformer Generator",
            "s_nom_opt p_nom_opt sub_network x_pu r_pu g_pu b_pu",
            EVERY,
            "dropped",
            RESULTS,
        ),
        Rule(
            "Line Transformer ShuntImpedance",
            "x_pu_eff r_pu_eff g_pu b_pu",
            EVERY,
            "dropped",
            RESULTS,
        ),
        Rule("series", "inputs", EVERY, "rewritten", AT_SNAPSHOT),
        Rule("series", "snapshots", EVERY, "rewritten", "those of the snapshots that are read."),
        Rule(
            "GlobalConstraint",
            "name type carrier_attribute sense constant",
            EVERY,
            "rewritten",
            "those of primary energy are kept; others bound sizes, and may be made from them.",
            some=True,
        ),
        Rule("series", "results", EVERY, "dropped", RESULTS),
        Rule("network", "name meta crs", EVERY, "dropped", TEXT),
        Rule("network", "objective", EVERY, "dropped", RESULTS),
    ),
    **xiidm_and_psse.RULES,
    "cgmes": cgmes.RULES,
}
